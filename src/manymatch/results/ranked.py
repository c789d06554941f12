"""The ranking of every query of a split: one table for each direction, beside the run files.

The explorer and `manymatch export` read these tables, so this module does not import torch.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import open_table, table_faults
from manymatch.util.regular_file import regular_path

COLUMNS = ("id", "rank", "items", "scores", "x", "y")
_QUERIES_AT_ONCE = 1000
_STAGE = "evaluate"


def write_ranked(
    path: Path,
    ids: Sequence[str],
    ranks: np.ndarray,
    items: np.ndarray,
    scores: np.ndarray,
    points: np.ndarray | None,
) -> None:
    """Write the table of one direction, whole or not at all.

    Args:
        ids: of the q queries.
        ranks: `(q,)`, the exact rank of the best annotated item.
        items: `(q, depth)`, rows of the best items in the table of the other direction.
        scores: `(q, depth)`, highest first.
        points: `(q, 2)`, the queries on the map of the model's embeddings; None: no map.
    """
    depth = items.shape[1]
    ends = pa.array(np.arange(len(ids) + 1, dtype=np.int32) * depth)
    x, y = (None, None) if points is None else points.astype(np.float32).T
    columns = {
        "id": pa.array(ids, pa.string()),
        "rank": pa.array(ranks.astype(np.int32)),
        "items": pa.ListArray.from_arrays(ends, items.astype(np.int32).ravel()),
        "scores": pa.ListArray.from_arrays(ends, scores.ravel()),
        "x": pa.nulls(len(ids), pa.float32()) if x is None else pa.array(x),
        "y": pa.nulls(len(ids), pa.float32()) if y is None else pa.array(y),
    }
    with files.replacing(path) as partial:
        pq.write_table(
            pa.table(columns),
            partial,
            row_group_size=_QUERIES_AT_ONCE,
            use_dictionary=False,
            write_page_checksum=True,
        )


class Ranked:
    """The table of one direction. Columns are read when they are first used. If the table is
    missing or damaged, every property raises a `DataError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        open_table(path, COLUMNS, _STAGE)

    def _read(self, name: str) -> pa.Array:
        with table_faults(self.path, _STAGE), regular_path(self.path) as file:
            table = pq.read_table(file, columns=[name], page_checksum_verification=True)
        return table[name].combine_chunks()

    @cached_property
    def ids(self) -> pa.Array:
        return self._read("id")

    @cached_property
    def ranks(self) -> np.ndarray:
        """`(q,)`, the rank of each query's best annotated item."""
        return np.asarray(self._read("rank"))

    @cached_property
    def items(self) -> np.ndarray:
        """`(q, depth)`, rows of the other table, best first."""
        return self._lists("items")

    @cached_property
    def scores(self) -> np.ndarray:
        """`(q, depth)`, highest first."""
        return self._lists("scores")

    def _lists(self, name: str) -> np.ndarray:
        column = self._read(name)
        values = np.asarray(column.flatten())
        if len(column) == 0 or len(values) % len(column):
            raise DataError(f"{self.path}: queries of different depths. Evaluate the model again")
        return values.reshape(len(column), -1)

    def query(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The items and the scores of one query; nothing else is read."""
        with table_faults(self.path, _STAGE), regular_path(self.path) as file:
            table = pq.ParquetFile(file, page_checksum_verification=True)
            group = table.read_row_group(row // _QUERIES_AT_ONCE, ["items", "scores"])
        own = group.slice(row % _QUERIES_AT_ONCE, 1)
        return tuple(np.asarray(own[name].combine_chunks().flatten()) for name in own.column_names)  # type: ignore[return-value]

    @cached_property
    def points(self) -> np.ndarray | None:
        """`(q, 2)`, the queries on the model's map; None: the model has no map."""
        columns = [self._read(name) for name in ("x", "y")]
        if columns[0].null_count:
            return None
        return np.stack([np.asarray(column) for column in columns], 1)
