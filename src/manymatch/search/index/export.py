"""The sets of an index with the exact best items of queries, for people who tune other engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from manymatch.search.index.index import Index
from manymatch.search.index.stored import ROWS_AT_ONCE
from manymatch.search.index.table import connected, engine_faults, lists
from manymatch.util.errors import ConfigError
from manymatch.util.files import replacing
from manymatch.util.parquet_file import table_writer
from manymatch.util.text_lines import numbered_lines

_QUERIES = 1_000
"""Items that are queries if no texts are given."""
_AT_ONCE = 64
"""Queries that are answered together."""


def write_sets(index: Index, to: Path, queries: Path | None = None, k: int = 10) -> str:
    """Write the tables `items` and `queries` to the folder `to`; says what was written.

    `items` has the columns of the index and the parts of the embeddings, `queries` the vectors of
    each query, and the `best` ids with their `scores`, which are exact.

    Args:
        to: a folder of two Parquet files; with the ending `.lance` a database of LanceDB.
        queries: a file with one text a line; None: items of the index, spread evenly, of which the
            others are found.

    Raises:
        ConfigError: the answers of the index are not exact.
        DataError: the texts cannot be read, or the embeddings are damaged.
    """
    if not index.is_exact:
        raise ConfigError(
            f"{index.folder}: answers by candidates are not exact. Export an index of --engine "
            "lance, or one in files."
        )
    asked = _asked(index, queries, k)
    count = len(asked)
    with replacing(to) as partial:
        if to.suffix == ".lance":
            with engine_faults(str(to)):
                database = connected(str(partial))
                database.create_table("items", _blocks(index), schema=next(_blocks(index)).schema)
                database.create_table("queries", asked)
        else:
            partial.mkdir()
            with table_writer(partial / "items.parquet", next(_blocks(index)).schema) as writer:
                for block in _blocks(index):
                    writer.write_batch(block)
            with table_writer(partial / "queries.parquet", asked.schema) as writer:
                writer.write_table(asked)
    return f"{len(index):,} items, and the exact best {k} of {count:,} queries"
