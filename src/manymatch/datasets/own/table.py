"""Tables with a row for each picture or caption: CSV, TSV, JSON lines, a JSON list, Parquet.

The columns are those of Hugging Face's image folders (`file_name`, and captions in one or several
columns), and those that published tables of COCO, Flickr30K and CUB have. A column of a Parquet
table may hold the pictures themselves.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.datasets.own.files import is_below
from manymatch.datasets.own.record import (
    Record,
    Unusable,
    caption_columns,
    file_columns,
    split_column,
    split_of_cell,
    split_of_path,
    texts,
)
from manymatch.util.errors import DataError, first_line, repeated
from manymatch.util.json_file import unique_members
from manymatch.util.json_stream import list_elements
from manymatch.util.parquet_file import foreign_rows
from manymatch.util.regular_file import open_regular
from manymatch.util.text_lines import numbered_lines

ENDINGS = (".csv", ".tsv", ".txt", ".token", ".jsonl", ".parquet")
"""Endings of tables. A file `.json` is a table if it is a list."""
_DELIMITERS = "\t,;|"
_TOKENS = re.compile(r"\S+#\d+\t")
"""The beginning of a table without a header: FILE#NUMBER, as in `Flickr8k.token.txt`."""
_TOKEN_COLUMNS = ["file", "caption"]
_FOLDER = re.compile("file[ _-]?path", re.I)
_MAGIC = {b"\xff\xd8": ".jpg", b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif"}
Row = tuple[str, dict[str, Any], str | None]
"""Position, cell by column, and why the row cannot be used, if so."""


class NoColumns(DataError):
    """A table without the columns of pictures and captions. The file may be no such table."""


@dataclass(frozen=True)
class Columns:
    """The columns that the user names; None: those that are recognised."""

    text: Sequence[str] | None = None
    split: str | None = None
    file: str | None = None
    encoding: str | None = None
    """The encoding of tables that are text (`util.text_lines`)."""

    @property
    def given(self) -> dict[str, str]:
        """The options by which the user names columns and their encoding."""
        text = ", ".join(self.text or ())
        options = {"--file": self.file or "", "--text": text, "--split": self.split or ""}
        options["--encoding"] = self.encoding or ""
        return {option: value for option, value in options.items() if value}


def misfit(path: Path, columns: Columns) -> DataError | None:
    """Return why a file cannot be read as a table, from its first row."""
    try:
        for where, row, _ in _rows(path, columns):
            _Roles(list(row), columns, where)
            return None
    except DataError as error:
        return error
    return _no_rows(path)


def read_tables(
    paths: Sequence[Path], folder: Path, root: Path, columns: Columns
) -> Iterator[Record]:
    """Yield a record for each row of the tables. File names are relative to the table's folder if
    the table is below `folder`, the folder of pictures. Names below `root` may say a split.

    Raises:
        DataError: a table is damaged, or has no column of file names or captions.
    """
    number = 0
    for path in paths:
        base = path.parent.relative_to(folder) if is_below(path, folder) else Path()
        path_split = split_of_path(path.relative_to(root).as_posix())
        roles = None
        for where, row, fault in _rows(path, columns):
            roles = roles or _Roles(list(row), columns, where)
            if fault:
                yield Record(roles.name(row), (), where, fault=fault)
            else:
                yield roles.record(row, where, base.as_posix(), path_split, number)
            number += 1
        if roles is None:
            raise _no_rows(path)


def _no_rows(path: Path) -> DataError:
    return NoColumns(f"{path}: no rows. Write a header and a row for each caption")


class _Roles:
    """The columns of one table that hold pictures, captions and splits."""

    def __init__(self, names: list[str], columns: Columns, where: str) -> None:
        shown = ", ".join(map(repr, names))[:300]
        self._files = [columns.file] if columns.file else file_columns(names)
        self._texts = list(columns.text or caption_columns(names))
        named = (columns.file, *(columns.text or ()), columns.split)
        missing = [name for name in named if name and name not in names]
        if missing:
            raise NoColumns(f"{where}: no column '{missing[0]}'. The columns are {shown}")
        if not self._files:
            raise NoColumns(
                f"{where}: no column of file names among {shown}. Name the column by --file, and "
                "separate columns by commas, tabs, semicolons or |"
            )
        if not self._texts:
            raise NoColumns(
                f"{where}: no column of captions among {shown}. Name the column by --text"
            )
        self._split = columns.split or split_column(names)
        self._names, self._given = {*names}, columns.text

    def _find_captions(self, row: dict[str, Any], where: str) -> None:
        """Add the columns of captions that only later rows of JSON have, such as `caption_2`.

        Raises:
            DataError: captions are in columns of another kind than those of earlier rows.
        """
        new = [name for name in row if name not in self._names]
        self._names |= {*new}
        if self._given:
            return
        columns = caption_columns([*self._texts, *new])
        if not {*self._texts} <= {*columns}:
            raise DataError(
                f"{where}: a caption in '{columns[0]}', but those of earlier rows are in "
                f"'{self._texts[0]}'. Name the columns of captions by --text"
            )
        self._texts = columns

    def name(self, row: dict[str, Any]) -> str:
        """Return the name of the row's picture, for messages."""
        return str(row.get(self._files[0], ""))

    def record(
        self, row: dict[str, Any], where: str, base: str, path_split: str | None, number: int
    ) -> Record:
        """Return the record of a row; `path_split` is the split that the table's name says."""
        if not row.keys() <= self._names:
            self._find_captions(row, where)
        # A row of JSON lines may lack the column.
        split = split_of_cell(row[self._split], where) if self._split in row else None
        name, picture = self._picture(row, number)
        status = row.get("status")  # img2dataset's, of an address that gave no picture
        if not name and isinstance(status, str) and status != "success":
            return Record(name, (), where, absent=True)
        if base != "." and not PurePosixPath(name).is_absolute():
            name = f"{base}/{name}"
        captions, fault = list[str](), None
        try:
            captions = [text for column in self._texts for text in texts(row.get(column))]
        except Unusable as reason:
            fault = str(reason)
        return Record(name, captions, where, split, path_split, picture, fault)

    def _picture(self, row: dict[str, Any], number: int) -> tuple[str, bytes | None]:
        name, picture = "", None
        for column in self._files:
            cell = row.get(column)
            if isinstance(cell, dict):
                name, cell = name or str(cell.get("path") or ""), cell.get("bytes")
            if isinstance(cell, bytes):
                picture = cell
            elif not name:
                name = "" if cell is None else str(cell)
            elif isinstance(cell, str) and _FOLDER.fullmatch(column):
                folder = PurePosixPath(cell)  # of Karpathy's tables
                is_path = cell and "://" not in cell and not folder.is_absolute()
                if is_path and ".." not in folder.parts:
                    name = cell if folder.name == PurePosixPath(name).name else f"{cell}/{name}"
        if picture is not None and not name:
            key = row.get("key")  # img2dataset's
            name = (key if isinstance(key, str) else "") or f"{number:08d}"
            name += next(
                (end for magic, end in _MAGIC.items() if picture.startswith(magic)), ".img"
            )
        path = PurePosixPath(name)
        if picture is not None and (path.is_absolute() or ".." in path.parts):
            name = path.name  # a path on the machine that wrote the table
        return name, picture


def _rows(path: Path, columns: Columns) -> Iterator[Row]:
    ending = path.suffix.lower()
    if ending == ".parquet":
        for number, cells in enumerate(foreign_rows(path), start=1):
            yield f"{path}: row {number}", cells, None
    elif ending in (".json", ".jsonl"):
        yield from _json_rows(path, columns.encoding)
    else:
        yield from _delimited_rows(path, columns)


def _json_rows(path: Path, encoding: str | None) -> Iterator[Row]:
    """The objects of a JSON list or of JSON lines."""
    rows: Iterator[tuple[str, Any]]
    if path.suffix.lower() == ".json":
        rows = ((f"{path}: [{n}]", row) for n, row in enumerate(list_elements(path)))
    else:
        rows = ((f"{path}:{n}", line) for n, line in numbered_lines(path, encoding))
    for where, row in rows:
        if path.suffix.lower() == ".jsonl":
            try:
                row = json.loads(row, object_pairs_hook=unique_members)
            except RecursionError:
                raise DataError(f"{where}: lists nested too deeply. Correct the line") from None
            except ValueError as error:
                raise DataError(f"{where}: not valid JSON: {first_line(error)}") from None
        if not isinstance(row, dict):
            raise NoColumns(f'{where}: expected a JSON object, such as {{"file_name": ...}}')
        yield where, row, None


def _delimiter(header: str, columns: Columns) -> str:
    """The sign that separates the columns of a header: it gives known columns, or the most."""

    def merit(sign: str) -> tuple[bool, bool, int]:
        names = [name.strip(' "') for name in header.split(sign)]
        has_file = columns.file in names if columns.file else bool(file_columns(names))
        texts = columns.text or caption_columns(names)
        return has_file, bool(texts) and set(texts) <= set(names), len(names)

    return max(_DELIMITERS, key=merit)


def _delimited_rows(path: Path, columns: Columns) -> Iterator[Row]:
    with open_regular(path) as stream:
        start = stream.read(256)
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise DataError(f"{path}: a web page, not a table. Download the table again")
    at = 0

    def lines() -> Iterator[str]:
        nonlocal at
        for number, text in numbered_lines(path, columns.encoding):
            at = number
            yield f"{text}\n"

    first, begins = next(lines(), ""), 1
    tokens = _TOKENS.match(first) is not None
    delimiter = "\t" if tokens else _delimiter(first.rstrip("\n"), columns)
    try:
        reader = csv.reader(
            lines(),
            delimiter=delimiter,
            quoting=csv.QUOTE_NONE if tokens else csv.QUOTE_MINIMAL,
            strict=True,
        )
        header = _TOKEN_COLUMNS if tokens else [name.strip() for name in next(reader, [])]
        if twice := repeated(filter(None, header)):
            raise DataError(
                f"{path}:{begins}: two columns are called '{twice}'. Give each column a name of "
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
