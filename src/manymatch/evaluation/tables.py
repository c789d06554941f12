"""Read the tables of the stage `captions`, or tables of the same columns from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.datasets.base import CAPTIONS
from manymatch.system.errors import DataError, first_line


def caption_columns(*names: str) -> pa.Schema:
    """Columns of the caption table."""
    return pa.schema([CAPTIONS.field(name) for name in names])


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
        table = read(path) if read else pq.read_table(path, columns=schema.names)
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
