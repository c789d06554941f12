"""The images and captions of a split, from a caption table, and their rows in other files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from manymatch.datasets.base import caption_columns
from manymatch.evaluation.protocols.relevance import Labels, labels_in
from manymatch.util.csv_table import is_csv, read_csv
from manymatch.util.errors import DataError, first_line, repeated
from manymatch.util.numpy_file import load_array, names_in
from manymatch.util.parquet_file import read_table
from manymatch.util.text_lines import numbered_lines

DEV, DEV_CAPTIONS = "dev", 5000
"""SCAN's validation split, and how many of its captions count: Flickr30K has 5,070."""

_COLUMNS = caption_columns("image_id", "caption_id", "split", "labels")


@dataclass(frozen=True)
class SplitTable:
    """The images and captions of a split; `image_index (m,)` as in `Embedded`.

    `caption_ids` are in the order of the images, `table_caption_ids` in the order of the table.
    """

    image_ids: list[str]
    caption_ids: list[str]
    table_caption_ids: list[str]
    image_index: Tensor
    labels: Labels


def read_split(path: Path, split: str) -> SplitTable:
    """Read the images and captions of a split.

    Args:
        path: the table of the stage `captions`, or a CSV file with the columns image_id and
            caption_id and, optionally, split and labels (whole numbers with spaces between).
            Without the column split, all rows are the split "test". The split `dev` is SCAN's, of
            which SCAN's code scores the first 5,000 captions.

    Raises:
        DataError: the table cannot be used, or has no row of that split.
    """
    table = read_table(
        path,
        _COLUMNS,
        "Run the stage 'captions', or give another table with --captions.",
        read=_read_csv if is_csv(path) else None,
    )
    rows = table.filter(pc.equal(table["split"], split))
    if split == DEV:
        rows = rows.slice(0, DEV_CAPTIONS)
    if not len(rows):
        splits = ", ".join(sorted(map(str, pc.unique(table["split"]).to_pylist())))
        raise DataError(
            f"{path}: no row of the split '{split}'. Choose another split: {splits or 'none'}."
        )
    caption_ids = rows["caption_id"].to_pylist()
    _check_unique(
        caption_ids,
        f"{path}: caption",
        "A caption has one row. Give the further images of a caption with --relevance",
    )
    image_ids = pc.unique(rows["image_id"]).to_pylist()
    image_index = pc.index_in(rows["image_id"], value_set=pa.array(image_ids)).to_numpy()
    order = np.argsort(image_index, kind="stable")
    return SplitTable(
        image_ids=image_ids,
        caption_ids=[caption_ids[row] for row in order],
        table_caption_ids=caption_ids,
        image_index=torch.from_numpy(image_index[order].astype(np.int64)),
        labels=labels_in(table, image_ids, path),
    )


def _read_csv(path: Path) -> pa.Table:
    table = read_csv(path, ["image_id", "caption_id"], ["split", "labels"])
    if "split" not in table.column_names:
        table = table.append_column("split", pa.array(["test"] * len(table), pa.string()))
    texts = table["labels"].to_pylist() if "labels" in table.column_names else [""] * len(table)
    labels = [[int(label) for label in text.split()] for text in texts]
    ids = table.select(["image_id", "caption_id", "split"])
    return ids.append_column("labels", pa.array(labels, pa.list_(pa.int32())))


def read_ids(path: Path) -> list[str]:
    """Read ids: a text file with one id a line, or a `.npy` array of whole numbers or text."""
    try:
        if path.suffix == ".npy":
            return names_in(load_array(path).ravel())
        return [line.strip() for _, line in numbered_lines(path)]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: not a list of ids: {first_line(error)}") from None


def rows_of(split_ids: Sequence[str], stored: Sequence[str], where: str) -> Tensor:
    """`(split_ids,)`: the row at which each id is stored.

    Raises:
        DataError: an id is stored twice, is missing, or is not in the split.
    """
    _check_unique(
        stored, where, "If images are repeated for each of their captions, keep the first of each"
    )
    row = {name: number for number, name in enumerate(stored)}
    known = set(split_ids)
    unknown = next((name for name in stored if name not in known), None)
    if unknown is not None:
        raise DataError(
            f"{where} '{unknown}' is not in the split. Check that both files belong to the same "
            "split of the same data set."
        )
    missing = next((name for name in split_ids if name not in row), None)
    if missing is not None:
        raise DataError(
            f"{where} '{missing}' is missing; the file has {len(stored):,} of {len(split_ids):,}. "
            "Give files with all of the split."
        )
    return torch.tensor([row[name] for name in split_ids])


def _check_unique(ids: Sequence[str], where: str, remedy: str) -> None:
    if (twice := repeated(ids)) is not None:
        first, row, *_ = (row for row, name in enumerate(ids, start=1) if name == twice)
        raise DataError(f"{where} '{twice}' twice (row {row}, first in row {first}). {remedy}.")
