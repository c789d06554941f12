"""The rows of published files, each with its position for messages: FILE:LINE or LIST[NUMBER]."""

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from manymatch.util.errors import DataError
from manymatch.util.json_stream import elements
from manymatch.util.text_lines import columns as parts_of_line
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
        where = f"{path}:{number}"
        yield where, parts_of_line(text, count, where)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the position (file:line) and the fields in `columns` of each row of a CSV file.

    Raises:
        DataError: the header lacks a column, or a row has another number of fields.
    """
    header: list[str] | None = None
    for number, line in chain(numbered_lines(path), [(1, None)]):
        where = f"{path}:{number}"
        try:
            fields = next(csv.reader([line or ""], strict=True), [])
        except csv.Error as error:
            raise DataError(f"{where}: not a line of CSV ({error})") from None
        if header is None:
            header = fields
            if missing := [name for name in columns if name not in header]:
                known = ", ".join(header)
                raise DataError(f"{where}: no column '{missing[0]}' (columns: {known})")
        elif line is not None and len(fields) != len(header):
            raise DataError(f"{where}: {len(fields)} fields, but the header has {len(header)}")
        elif line is not None:
            yield where, [fields[header.index(name)] for name in columns]
