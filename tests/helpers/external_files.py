"""Files of another program for the command `score`: a small split and arrays of every kind."""

from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from made_scores import ranked_split
from safetensors.numpy import save_file

from manymatch.datasets.base import CAPTIONS
from manymatch.evaluation.external.score import ExternalFiles
from manymatch.evaluation.external.score import score as scored
from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.metrics import rounded

IMAGES = ["i0", "i1", "i2", "i3", "i4"]
CLASSES = [1, 2, 1, 9, 9]
INDEX = [0, 0, 1, 1, 1, 2, 3, 3, 4]
TEXTS = [f"t{number}" for number in range(len(INDEX))]


@dataclass(frozen=True)
class Files:
    folder: Path
    table: np.ndarray
    images: np.ndarray
    texts: np.ndarray

    @property
    def captions(self):
        """The caption table of the split, with two training images."""
        return self.folder / "captions.parquet"

    def made(self, name, array):
        """The file with the array, of the kind that its name says."""
        path = self.folder / name
        if path.suffix == ".npy":
            np.save(path, array)
        elif path.suffix == ".npz":
            np.savez(path, found=array)
        elif path.suffix == ".safetensors":
            save_file({"found": np.ascontiguousarray(array)}, path)
        elif path.suffix == ".pt":
            torch.save(torch.from_numpy(array.copy()), path)
        else:
            with h5py.File(path, "w") as file:
                file["group/found"] = array
        return str(path)


def external_files(tmp_path):
    """Scores and vectors of the split in `tmp_path`."""
    rows = [("tr", "tr0", "train", "x", "tr.jpg", [1]), ("tr2", "tr1", "train", "x", "b.jpg", [2])]
    rows += [
        (IMAGES[image], TEXTS[text], "test", "x", "a.jpg", [CLASSES[image]])
        for text, image in enumerate(INDEX)
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=CAPTIONS), tmp_path / "captions.parquet")
    rng = np.random.default_rng(0)
    table = rng.permutation(45).reshape(5, 9).astype(np.float32)
    return Files(
        tmp_path, table, rng.normal(size=(5, 4)).astype("f4"), rng.normal(size=(9, 4)).astype("f4")
    )


def score(*given, **options):
    """The metrics alone."""
    return scored(*given, **options).values


def expected(table):
    """The metrics of a matrix of scores."""
    of = ranked_split(torch.from_numpy(table), torch.tensor(INDEX))
    return rounded(recall_of(of.ranking))


def score_of(files, dataset="scenes", **made):
    """The metrics of the files `made`."""
    if "scores" in made:
        made["scores"] = (made["scores"],)
    return score(dataset, ExternalFiles(**made), files.captions)
