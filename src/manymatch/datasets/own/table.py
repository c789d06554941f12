"""Tables with a row for each picture or caption: CSV, TSV, JSON lines, Parquet.

The columns are those of Hugging Face's image folders (`file_name`, and captions in one or several
columns), and those that published tables of COCO, Flickr30K and CUB have. A column of a Parquet
table may hold the pictures themselves.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.datasets.own.record import (
    Record,
    caption_columns,
    file_columns,
    split_of_path,
    split_of_word,
    texts,
)
from manymatch.foreign.parquet_file import python_cells
from manymatch.foreign.regular_file import open_regular, regular_path
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError, first_line

ENDINGS = (".csv", ".tsv", ".txt", ".token", ".jsonl", ".parquet")
_DELIMITERS = "\t,;|"
_TOKENS = re.compile(r"\S+#\d+\t")
"""The beginning of a table without a header: FILE#NUMBER, as in `Flickr8k.token.txt`."""
_TOKEN_COLUMNS = ["file", "caption"]
_BATCH = 64
"""Rows with pictures in memory."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MAGIC = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif"}
Row = tuple[str, dict[str, Any], str | None]
"""Position, cell by column, and why the row cannot be used, if so."""


@dataclass(frozen=True)
class Columns:
    """The columns that the user names; None: those that are recognised."""

    text: Sequence[str] | None = None
    split: str | None = None


def read_tables(paths: Sequence[Path], folder: Path, columns: Columns) -> Iterator[Record]:
    """Yield a record for each row of the tables. File names are relative to the table's folder if
    the table is below `folder`, the folder of pictures.

    Raises:
        DataError: a table is damaged, or has no column of file names or captions.
    """
    number = 0
    for path in paths:
        base = path.parent.relative_to(folder) if path.is_relative_to(folder) else Path()
        path_split = split_of_path(
            path.relative_to(folder).as_posix() if base != Path() else path.name
        )
        roles = None
        for where, row, fault in _rows(path):
            roles = roles or _Roles(list(row), columns, where)
            if fault:
                yield Record(roles.name(row), (), where, fault=fault)
            else:
                yield roles.record(row, where, base.as_posix(), path_split, number)
            number += 1
        if roles is None:
            raise DataError(f"{path}: no rows. Write a header and a row for each caption")


class _Roles:
    """The columns of one table that hold pictures, captions and splits."""

    def __init__(self, names: list[str], columns: Columns, where: str) -> None:
        shown = ", ".join(map(repr, names))[:300]
        self._files = file_columns(names)
        self._texts = list(columns.text or caption_columns(names))
        missing = [name for name in (*self._texts, columns.split) if name and name not in names]
        if missing:
            raise DataError(f"{where}: no column '{missing[0]}'. The columns are {shown}")
        if not self._files:
            raise DataError(
                f"{where}: no column of file names among {shown}. Call the column file_name, and "
                "separate columns by commas, tabs or semicolons"
            )
        if not self._texts:
            raise DataError(
                f"{where}: no column of captions among {shown}. Name the column by --text"
            )
        self._split = columns.split or "split"

    def name(self, row: dict[str, Any]) -> str:
        """Return the name of the row's picture, for messages."""
        return str(row.get(self._files[0], ""))

    def record(
        self, row: dict[str, Any], where: str, base: str, path_split: str | None, number: int
    ) -> Record:
        """Return the record of a row; `path_split` is the split that the table's name says."""
        # A row of JSON lines may lack the column.
        split = _split(row[self._split], where) if self._split in row else None
        name, picture = self._picture(row, number)
        name = name if base == "." else f"{base}/{name}"
        captions = [text for column in self._texts for text in texts(row.get(column))]
        return Record(name, captions, where, split, path_split, picture)

    def _picture(self, row: dict[str, Any], number: int) -> tuple[str, bytes | None]:
        name, picture = "", None
        for column in self._files:
            cell = row.get(column)
            if isinstance(cell, dict):
                name, cell = name or str(cell.get("path") or ""), cell.get("bytes")
            if isinstance(cell, bytes):
                picture = cell
            else:
                name = name or str(cell or "")
        if picture is not None and not name:
            name = f"{number:08d}" + next(
                (end for magic, end in _MAGIC.items() if picture.startswith(magic)), ".img"
            )
        path = PurePosixPath(name)
        if picture is not None and (path.is_absolute() or ".." in path.parts):
            name = path.name  # a path on the machine that wrote the table
        return name, picture


def _split(cell: Any, where: str) -> str:
    split = split_of_word(str(cell))
    if split is None:
        raise DataError(
            f"{where}: unknown split {str(cell)!a:.60}. Write train, validation or test"
        )
    return split


def _rows(path: Path) -> Iterator[Row]:
    if path.suffix.lower() == ".parquet":
        return _parquet_rows(path)
    return _json_rows(path) if path.suffix.lower() == ".jsonl" else _delimited_rows(path)


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    try:
        with regular_path(path) as name, pq.ParquetFile(name, pre_buffer=False) as table:
            for batch in table.iter_batches(_BATCH, use_threads=False):
                for row in python_cells(pa.Table.from_batches([batch]), path).to_pylist():
                    number += 1
                    yield f"{path}: row {number}", row, None
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a Parquet table ({first_line(error)})") from None


def _json_rows(path: Path) -> Iterator[Row]:
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: not valid JSON: {first_line(error)}") from None
        if not isinstance(row, dict):
            raise DataError(f'{where}: expected a JSON object, such as {{"file_name": ...}}')
        yield where, row, None


def _delimited_rows(path: Path) -> Iterator[Row]:
    with open_regular(path) as stream:
        start = stream.read(256)
    if start.startswith(_UTF16):
        raise DataError(f"{path}: the text is UTF-16. Save the table as UTF-8")
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise DataError(f"{path}: a web page, not a table. Download the table again")
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        for number, text in numbered_lines(path):
            at = number
            yield f"{text}\n"

    first, begins = next(lines(), ""), 1
    tokens = _TOKENS.match(first) is not None

    def names_files(sign: str) -> bool:
        return bool(file_columns([name.strip(' "\n') for name in first.split(sign)]))

    delimiter = "\t" if tokens else max(_DELIMITERS, key=names_files)
    try:
        reader = csv.reader(
            lines(),
            delimiter=delimiter,
            quoting=csv.QUOTE_NONE if tokens else csv.QUOTE_MINIMAL,
            strict=True,
        )
        header = _TOKEN_COLUMNS if tokens else [name.strip() for name in next(reader, [])]
        repeated = next((name for name in header if name and header.count(name) > 1), None)
        if repeated:
            raise DataError(
                f"{path}:{begins}: two columns are called '{repeated}'. Give each column a name of "
                "its own"
            )
        begins = at + 1
        for cells in reader:
            fault = None
            if len(cells) != len(header):
                fault = (
                    f"{len(cells)} columns, but the header has {len(header)}. Put captions that "
                    "contain the separator in quotes"
                )
            row = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
            if tokens:
                row["file"] = row["file"].rpartition("#")[0]
            yield f"{path}:{begins}", row, fault
            begins = at + 1
    except csv.Error as error:
        if "new-line" in str(error):
            raise DataError(
                f"{path}:{begins}: a line ends with a carriage return alone. Save the table as "
                "CSV UTF-8"
            ) from None
        raise DataError(
            f"{path}:{begins}: {error}. Write a quote in a caption twice, and close each quote"
        ) from None
