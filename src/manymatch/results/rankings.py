"""The run files of an evaluated model: which rank the first positive of each query has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from manymatch.util.errors import DataError

_COLUMNS = {"query": pa.string(), "item": pa.string(), "rank": pa.int32(), "score": pa.string()}


@dataclass(frozen=True)
class PositiveRanks:
    """The rank (from 1) of each query's first annotated positive among the first `depth` answers;
    None: none of these answers is a positive."""

    depth: int
    ranks: dict[str, int | None]

    def recall(self, k: int) -> float:
        """R@K in percent, for `k` up to `depth`."""
        hits = sum(rank is not None and rank <= k for rank in self.ranks.values())
        return 100 * hits / len(self.ranks)


def read_positive_ranks(path: Path) -> PositiveRanks | None:
    """The ranks in a TREC run file; None if the file is missing or empty.

    Ties count against the model: of answers with equal scores, positives come last. A run file
    holds no judgments. An answer counts as a positive if the caption's id is the image's id with
    '#' and a number. The caller must compare the recalls with the metrics: some data sets have
    other ids.

    Raises:
        DataError: a line is not `QUERY Q0 ITEM RANK SCORE TAG`.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=["query", "q0", "item", "rank", "score", "tag"]),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(column_types=_COLUMNS, include_columns=[*_COLUMNS]),
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: expected lines 'QUERY Q0 ITEM RANK SCORE TAG': {error}. "
            "Evaluate the model again."
        ) from None
    if table["rank"].null_count:
        raise DataError(f"{path}: a line has no rank. Evaluate the model again.")
    query, item = table["query"], table["item"]
    positive = pc.or_(pc.equal(_image_id(query), item), pc.equal(_image_id(item), query))
    ranks: dict[str, int | None] = dict.fromkeys(pc.unique(query).to_pylist())
    ties = {}
    for row in table.filter(positive).to_pylist():
        if ranks[row["query"]] is None:
            ranks[row["query"]] = row["rank"]
            ties[f"{row['query']} {row['score']}"] = row["rank"]
    keys = pc.binary_join_element_wise(query, table["score"], " ")
    tied = pc.and_(pc.is_in(keys, pa.array(ties, pa.string())), pc.invert(positive))
    for row in table.filter(tied).to_pylist():
        rank = ranks[row["query"]]
        if rank is not None and row["rank"] > ties[f"{row['query']} {row['score']}"]:
            ranks[row["query"]] = rank + 1
    plain = {unquote(key): rank for key, rank in ranks.items()}
    return PositiveRanks(pc.max(table["rank"]).as_py(), plain)


def _image_id(caption_id: pa.ChunkedArray) -> pa.ChunkedArray:
    """The part of an id before the last "#"."""
    return pc.replace_substring_regex(caption_id, "#[^#]*$", "")
