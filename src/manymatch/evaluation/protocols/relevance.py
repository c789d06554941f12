"""Which images and captions match: the annotated pairs, a data set's further judgments, and the
class labels of images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from manymatch.datasets.base import JUDGED, RELEVANCE, caption_columns
from manymatch.util.csv_table import is_csv, read_csv
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import read_table

_ANSWERS = ("true", "false", "1", "0")
_NO_PAIRS = torch.empty(0, 2, dtype=torch.int64)


@dataclass(frozen=True)
class Judgments:
    """`extra (p, 2)`: rows (image, caption) of positives beyond the annotated pairs, without
    repetition; `complete`: every positive is known, so that every query can be scored;
    `judged_false (q, 2)`: rows of pairs that people judged false."""

    extra: Tensor
    complete: bool
    judged_false: Tensor = _NO_PAIRS

    def __bool__(self) -> bool:
        return len(self.extra) > 0


NO_JUDGMENTS = Judgments(_NO_PAIRS, complete=False)


def read_judgments(
    path: Path,
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    image_index: Tensor,
    voted: Mapping[tuple[str, str], bool] | None = None,
) -> Judgments:
    """Read the judgments of the given images and captions from a relevance table
    (`datasets.base.RELEVANCE` or `JUDGED`), or from a CSV file with its columns. Pairs of other
    splits are left out. What people `voted` about pairs of ids counts more than the table.

    Raises:
        DataError: the table cannot be used, or a CSV file has only pairs of other splits.
    """
    foreign = is_csv(path)
    table = read_table(
        path,
        JUDGED,
        "Run the stage 'captions', or give another table with --relevance.",
        read=_read_csv if foreign else None,
        optional=("relevant",),
    )
    image = pc.index_in(table["image_id"], value_set=pa.array(image_ids, pa.string()))
    caption = pc.index_in(table["caption_id"], value_set=pa.array(caption_ids, pa.string()))
    known = pc.and_(pc.is_valid(image), pc.is_valid(caption))
    if foreign and len(table) and not pc.any(known).as_py():
        first = " and ".join(str(table[name][0]) for name in RELEVANCE.names)
        raise DataError(
            f"{path}: none of the {len(table):,} pairs is an image and a caption of the split, "
            f"such as {first}. Check the ids"
        )
    relevant = pc.fill_null(table["relevant"], True) if "relevant" in table.column_names else True

    rows, columns = (
        {name: row for row, name in enumerate(ids)} for ids in (image_ids, caption_ids)
    )
    said = {
        (rows[one], columns[other]): answer
        for (one, other), answer in (voted or {}).items()
        if one in rows and other in columns
    }

    def pairs_of(kept: pa.ChunkedArray, answer: bool) -> Tensor:
        both = [np.asarray(column.filter(kept), dtype=np.int64) for column in (image, caption)]
        pairs = torch.from_numpy(np.unique(np.stack(both, 1), axis=0))
        if said:
            others = {*map(tuple, pairs.tolist())} - said.keys()
            new = {pair for pair, own in said.items() if own == answer}
            pairs = torch.tensor(sorted(others | new), dtype=torch.int64).view(-1, 2)
        return pairs[image_index[pairs[:, 1]] != pairs[:, 0]]

    true = pairs_of(pc.and_(known, relevant), True)
    false = pairs_of(pc.and_not(known, relevant), False)
    if len(false) and (both := {*map(tuple, false.tolist())} & {*map(tuple, true.tolist())}):
        row, column = min(both)
        raise DataError(
            f"{path}: {image_ids[row]} and {caption_ids[column]} are judged true in one row and "
            "false in another. Keep one of the rows"
        )
    complete = (table.schema.metadata or {}).get(b"complete") == b"true"
    return Judgments(true, complete, false)


def _read_csv(path: Path) -> pa.Table:
    table = read_csv(path, RELEVANCE.names, ("relevant",))
    if "relevant" in table.column_names:
        for number, answer in enumerate(table["relevant"].to_pylist(), start=1):
            if answer.lower() not in _ANSWERS:
                raise ValueError(
                    f"row {number}: relevant is '{answer[:20]}'. Write true or false, or remove "
                    "the row"
                )
    return table


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
