"""Columns of a caption table, maybe of another program's making."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from manymatch.datasets.base import CAPTIONS


def typed(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The named columns as the stage `captions` writes them; whole numbers become ids too.

    Raises:
        KeyError: there is no such column.
        ValueError, pa.ArrowException: its cells are of another kind, or some are empty.
    """
    columns = {name: table[name].cast(CAPTIONS.field(name).type) for name in names}
    for name, column in columns.items():
        if name != "labels" and column.null_count:
            raise ValueError(f"{column.null_count:,} cells of the column {name} are empty")
    return pa.table(columns)
