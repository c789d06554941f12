"""Tables that an earlier stage or another program wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.foreign.regular_file import regular_path
from manymatch.system.errors import DataError, first_line


def open_table(path: Path, columns: Sequence[str], stage: str) -> pq.ParquetFile:
    """The table at `path`, which the stage `stage` writes and which has at least `columns`.

    Raises:
        DataError: the file is missing or damaged, or lacks a column.
    """
    try:
        with regular_path(path) as name:
            table = pq.ParquetFile(name)
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


def read_table(
    path: Path,
    schema: pa.Schema,
    remedy: str = "Run the stage 'captions' again.",
    read: Callable[[Path], pa.Table] | None = None,
) -> pa.Table:
    """The columns of `schema`, in its types: whole numbers become ids too. Metadata is kept.

    Args:
        remedy: a sentence that says how to make the table again, for error messages.
        read: reads a file that is not Parquet.

    Raises:
        DataError: the file is missing or unreadable, lacks a column, or has cells of another type
            or empty cells. Only a list may be empty.
    """
    try:
        with regular_path(path) as file:
            table = read(Path(file)) if read else pq.read_table(file, columns=schema.names)
        columns = {field.name: table[field.name].cast(field.type) for field in schema}
        for name, column in columns.items():
            if column.null_count and not pa.types.is_list(column.type):
                raise ValueError(f"{column.null_count:,} cells of the column {name} are empty")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. {remedy}") from None
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        fault = first_line(error).strip("'\"")
        names = ", ".join(schema.names)
        raise DataError(f"{path}: not a table of {names}: {fault}. {remedy}") from None
    return pa.table(columns).replace_schema_metadata(table.schema.metadata)
