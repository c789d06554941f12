"""The rows of published files, each with its position for messages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from manymatch.util.csv_table import read_csv
from manymatch.util.errors import DataError
from manymatch.util.json_stream import elements
from manymatch.util.parquet_file import read_table
from manymatch.util.text_lines import numbered_lines


def list_rows(path: Path, *lists: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the list's name, the position and the value of each element of the `lists` of a JSON
    object; see `elements`."""
    for name, number, value in elements(path, lists):
        yield name, f"{path}: {name}[{number}]", value


def tab_rows(path: Path, count: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the position and the `count` parts of each line, which are separated by tabs.

    Raises:
        DataError: a line has another number of parts.
    """
    for number, text in numbered_lines(path):
        where, parts = f"{path}:{number}", text.split("\t")
        if len(parts) != count:
            raise DataError(
                f"{where}: expected {count} parts separated by tabs, found {len(parts)}"
            )
        yield where, parts


def csv_rows(path: Path, *columns: str) -> Iterator[tuple[str, ...]]:
    """Yield the position (file: row) and the cells in `columns` of each row of a CSV file.

    Raises:
        DataError: the file is missing or no such table, or lacks a column.
    """
    schema = pa.schema([(name, pa.string()) for name in columns])
    table = read_table(path, schema, "Check the file.", lambda path: read_csv(path, columns))
    cells = (table[name].to_pylist() for name in columns)
    for number, row in enumerate(zip(*cells, strict=True), start=1):
        yield f"{path}: row {number}", *row
