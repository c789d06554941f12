"""Which images and captions there are, by a caption table, and where each lies in other files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import torch
from torch import Tensor

from manymatch.evaluation.external.caption_table import typed
from manymatch.evaluation.protocols.labels import Labels, labels_of
from manymatch.foreign.numpy_file import load_array
from manymatch.system.errors import DataError, first_line

DEV, DEV_CAPTIONS = "dev", 5000
"""SCAN's validation split, and how many of its captions count: Flickr30K's has 5,070."""


@dataclass(frozen=True)
class Listed:
    """The images and captions of a split, the captions in the images' order; `owner (m,)` as in
    `Embedded`. `listed_captions`: the captions in the table's own order."""

    image_ids: list[str]
    caption_ids: list[str]
    listed_captions: list[str]
    owner: Tensor
    labels: Labels


def read_listed(path: Path, split: str) -> Listed:
    """The images and captions of a split.

    Args:
        path: the table of the stage `captions`, or a CSV file with the columns image_id and
            caption_id, and where there are such split and labels (whole numbers with spaces
            between). Without the column split all is one split. A split called `dev` is SCAN's, of
            which its code scores the first 5,000 captions.

    Raises:
        DataError: the table cannot be used, or has nothing of that split.
    """
    table = _read(path)
    chosen = table.filter(pc.equal(table["split"], split))
    if split == DEV:
        chosen = chosen.slice(0, DEV_CAPTIONS)
    if not len(chosen):
        splits = ", ".join(sorted(map(str, pc.unique(table["split"]).to_pylist())))
        raise DataError(f"{path}: nothing of the split '{split}' (there is: {splits or 'nothing'})")
    listed = chosen["caption_id"].to_pylist()
    _check_once(listed, f"{path}: caption")
    image_ids = pc.unique(chosen["image_id"]).to_pylist()
    owner = pc.index_in(chosen["image_id"], value_set=pa.array(image_ids)).to_numpy()
    order = np.argsort(owner, kind="stable")
    return Listed(
        image_ids=image_ids,
        caption_ids=[listed[row] for row in order],
        listed_captions=listed,
        owner=torch.from_numpy(owner[order].astype(np.int64)),
        labels=labels_of(table, image_ids, str(path)),
    )


def _read(path: Path) -> pa.Table:
    try:
        table = _from_csv(path) if path.suffix == ".csv" else pq.read_table(path)
        return typed(table, ("image_id", "caption_id", "split", "labels"))
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file; run the stage 'captions', or give a table with --captions"
        ) from None
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        first = first_line(error).strip("'\"")
        raise DataError(f"{path}: not a table of images and captions: {first}") from None


def _from_csv(path: Path) -> pa.Table:
    as_text = dict.fromkeys(("image_id", "caption_id", "split", "labels"), pa.string())
    options = pa_csv.ConvertOptions(column_types=as_text, strings_can_be_null=False)
    table = pa_csv.read_csv(path, convert_options=options)
    if "split" not in table.column_names:
        table = table.append_column("split", pa.array(["test"] * len(table), pa.string()))
    texts = table["labels"].to_pylist() if "labels" in table.column_names else [""] * len(table)
    labels = [[int(label) for label in text.split()] for text in texts]
    kept = table.select(["image_id", "caption_id", "split"])
    return kept.append_column("labels", pa.array(labels, pa.list_(pa.int32())))


def read_ids(path: Path) -> list[str]:
    """Ids, one a line of a text file, or a `.npy` array of whole numbers or text."""
    try:
        if path.suffix == ".npy":
            return [str(name) for name in load_array(path).ravel().tolist()]
        return path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a list of ids: {first_line(error)}") from None


def places(wanted: Sequence[str], stored: Sequence[str], where: str) -> Tensor:
    """`(wanted,)`: at which row each of the ids is stored.

    Raises:
        DataError: an id that is stored twice, is not wanted, or is missing.
    """
    _check_once(stored, where)
    row = {name: number for number, name in enumerate(stored)}
    known = set(wanted)
    unknown = next((name for name in stored if name not in known), None)
    if unknown is not None:
        raise DataError(f"{where} '{unknown}' is not in the split's captions table")
    missing = next((name for name in wanted if name not in row), None)
    if missing is not None:
        raise DataError(
            f"{where} '{missing}' is missing: {len(stored):,} of {len(wanted):,} are there"
        )
    return torch.tensor([row[name] for name in wanted])


def _check_once(ids: Sequence[str], where: str) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for row, name in enumerate(ids):
        if name in seen:
            raise DataError(
                f"{where} '{name}' twice (row {row + 1}); where images are repeated for each of "
                "their captions, keep the first of each"
            )
        seen.add(name)
