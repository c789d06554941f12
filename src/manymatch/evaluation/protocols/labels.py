"""The class labels of images, from the caption table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from manymatch.datasets.base import caption_columns
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import read_table


@dataclass(frozen=True)
class Labels:
    """`image_labels` are the labels of each image, possibly none; `seen` are the labels that count
    as seen in training.

    Labels of training images are seen. For test images labels of validation images are seen too:
    the validation classes of a fold chose the model.
    """

    image_labels: Sequence[tuple[int, ...]]
    seen: frozenset[int] = frozenset()

    def part(self, images: slice) -> "Labels":
        """The labels of a run of the images."""
        return Labels(self.image_labels[images], self.seen)


def read_labels(captions: Path, image_ids: Sequence[str]) -> Labels:
    """Read the labels of the given images from a caption table (`datasets.base.CAPTIONS`).

    Raises:
        DataError: the table cannot be used, or lacks an image.
    """
    table = read_table(captions, caption_columns("image_id", "split", "labels"))
    return labels_in(table, image_ids, captions)


def labels_in(table: pa.Table, image_ids: Sequence[str], path: Path) -> Labels:
    """The labels in a table that was read from `path`; see `read_labels`."""
    known = pc.unique(table["image_id"])
    number = pc.index_in(table["image_id"], value_set=known).to_numpy()
    first_row = np.unique(number, return_index=True)[1]
    position = pc.index_in(pa.array(image_ids, pa.string()), value_set=known)
    if position.null_count:
        missing = image_ids[position.is_valid().index(False).as_py()]
        raise DataError(f"{path}: no image '{missing}'. Run the stage 'captions' again.")
    rows = table.take(pa.array(first_row[position.to_numpy()]))
    is_test = "test" in pc.unique(rows["split"]).to_pylist()
    earlier = pa.array(["train", "validation"] if is_test else ["train"])
    earlier_labels = table.filter(pc.is_in(table["split"], earlier))["labels"]
    seen = pc.unique(pc.list_flatten(earlier_labels)).to_pylist()
    return Labels([tuple(labels or ()) for labels in rows["labels"].to_pylist()], frozenset(seen))
