"""Tables in parquet files that an earlier stage wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.system.errors import DataError, first_line


def open_table(path: Path, columns: Sequence[str], stage: str) -> pq.ParquetFile:
    """The table at `path`, which the stage `stage` writes and which has at least `columns`.

    Raises:
        DataError: the file is missing or damaged, or lacks a column.
    """
    try:
        table = pq.ParquetFile(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Run the stage '{stage}' first") from None
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not a table ({first_line(error)}). Run the stage '{stage}' again"
        ) from None
    missing = set(columns) - set(table.schema_arrow.names)
    if missing:
        raise DataError(
            f"{path}: no column {', '.join(sorted(missing))}. Run the stage '{stage}' again"
        )
    return table
