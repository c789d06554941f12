"""What the caption table says of the images besides their captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from manymatch.evaluation.external.caption_table import typed
from manymatch.system.errors import DataError, first_line


@dataclass(frozen=True)
class Labels:
    """`of_images`: the class labels of each image, maybe none; `seen`: all that an image of the
    training split has, and for test images all that one of the validation split has too: a fold's
    validation classes chose the model and are none of the unseen ones."""

    of_images: Sequence[tuple[int, ...]]
    seen: frozenset[int] = frozenset()

    def part(self, images: slice) -> Labels:
        """Those of a run of the images."""
        return Labels(self.of_images[images], self.seen)


def read_labels(table: Path, image_ids: Sequence[str]) -> Labels:
    """The labels in a caption table (`datasets.base.CAPTIONS`) of the given images.

    Raises:
        DataError: the table cannot be read, or lacks one of them.
    """
    found = _read(table)
    return labels_of(found, image_ids, str(table))


def labels_of(table: pa.Table, image_ids: Sequence[str], where: str) -> Labels:
    """The same from the columns image_id, split and labels of a table read from `where`."""
    known = pc.unique(table["image_id"])
    number = pc.index_in(table["image_id"], value_set=known).to_numpy()
    first_row = np.unique(number, return_index=True)[1]
    place = pc.index_in(pa.array(image_ids, pa.string()), value_set=known)
    if place.null_count:
        missing = image_ids[place.is_valid().index(False).as_py()]
        raise DataError(f"{where}: no image '{missing}'; run the stage 'captions' again")
    own = table.take(pa.array(first_row[place.to_numpy()]))
    of_test = "test" in pc.unique(own["split"]).to_pylist()
    earlier = pa.array(["train", "validation"] if of_test else ["train"])
    before = table.filter(pc.is_in(table["split"], earlier))["labels"]
    seen = pc.unique(pc.list_flatten(before)).to_pylist()
    labels = own["labels"].to_pylist()
    return Labels([tuple(of_image or ()) for of_image in labels], frozenset(seen))


def _read(path: Path) -> pa.Table:
    try:
        columns = ["image_id", "split", "labels"]
        return typed(pq.read_table(path, columns=columns), columns)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; run the stage 'captions' first") from None
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        first = first_line(error).strip("'\"")
        raise DataError(
            f"{path}: not a caption table ({first}); run the stage 'captions' again"
        ) from None
