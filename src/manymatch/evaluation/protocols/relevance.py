"""Which images and captions match: the annotated pairs, and a data set's further judgments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from manymatch.datasets.base import JUDGED, RELEVANCE
from manymatch.util.csv_table import is_csv, read_csv
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import read_table

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
    path: Path, image_ids: Sequence[str], caption_ids: Sequence[str], image_index: Tensor
) -> Judgments:
    """Read the judgments of the given images and captions from a relevance table
    (`datasets.base.RELEVANCE` or `JUDGED`), or from a CSV file with its columns. Pairs of other
    splits are left out.

    Raises:
        DataError: the table cannot be used, or a CSV file has only pairs of other splits.
    """
    foreign = is_csv(path)
    table = read_table(
        path,
        JUDGED,
        "Run the stage 'captions', or give another table with --relevance.",
        read=(lambda file: read_csv(file, RELEVANCE.names, ("relevant",))) if foreign else None,
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

    def rows(kept: pa.ChunkedArray) -> Tensor:
        columns = [np.asarray(column.filter(kept), dtype=np.int64) for column in (image, caption)]
        pairs = torch.from_numpy(np.unique(np.stack(columns, 1), axis=0))
        return pairs[image_index[pairs[:, 1]] != pairs[:, 0]]

    return Judgments(
        rows(pc.and_(known, relevant)),
        (table.schema.metadata or {}).get(b"complete") == b"true",
        rows(pc.and_not(known, relevant)),
    )


def judged_besides(
    judgments: Judgments,
    judged: Mapping[tuple[str, str], bool],
    image_ids: Sequence[str],
    caption_ids: Sequence[str],
    image_index: Tensor,
) -> Judgments:
    """`judgments` with further pairs (image_id, caption_id) that people judged true or false. Pairs
    of other splits and annotated pairs are left out; what people judged here counts more than the
    table."""
    rows = {name: row for row, name in enumerate(image_ids)}
    columns = {name: column for column, name in enumerate(caption_ids)}
    answers = {
        (rows[image], columns[caption]): relevant
        for (image, caption), relevant in judged.items()
        if image in rows and caption in columns and image_index[columns[caption]] != rows[image]
    }
    if not answers:
        return judgments

    def with_new(pairs: Tensor, relevant: bool) -> Tensor:
        kept = {pair for pair in map(tuple, pairs.tolist()) if pair not in answers}
        new = {pair for pair, answer in answers.items() if answer == relevant}
        return torch.tensor(sorted(kept | new), dtype=torch.int64).view(-1, 2)

    extra, judged_false = with_new(judgments.extra, True), with_new(judgments.judged_false, False)
    return Judgments(extra, judgments.complete, judged_false)
