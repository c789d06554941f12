"""Small tables with named columns in CSV files: those of other programs, and those for people."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from manymatch.util.errors import repeated
from manymatch.util.regular_file import open_regular
from manymatch.util.text_lines import marked_encoding, numbered_lines

_DELIMITERS = ",;\t|"
_FORMULA = r"^([=@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|[+-].*[^\d.])"
"""A text that a spreadsheet would compute; a number is none."""
_SHOWN = 300
"""Characters of the names of the columns in a message."""


def is_csv(path: Path) -> bool:
    """Return whether a file is a table of text, and not one in Parquet."""
    return path.suffix.lower() in (".csv", ".tsv", ".txt")


def read_csv(
    path: Path, needed: Sequence[str], optional: Sequence[str] = (), keep: bool = False
) -> pa.Table:
    """Read columns of text. The delimiter is a comma, a semicolon, a tab or a bar.

    Spaces around names and cells, and the case of names, do not count.

    Args:
        needed: names of columns that the file must have.
        optional: names of columns that are read if the file has them.
        keep: read all further named columns, too, under the names that they have in the file, and
            cells with the spaces around them.

    Raises:
        ValueError: a needed column is missing, and the message names the columns of the file; or a
            cell of a needed column is empty; or a quote is not closed.
        DataError: the text is not UTF-8; the message names the line.
        OSError, pa.ArrowException: the file cannot be read as a table.
    """
    number, header = next(numbered_lines(path), (1, ""))
    written, delimiter = max(
        ((_names(header, delimiter), delimiter) for delimiter in _DELIMITERS),
        key=lambda split: len({*needed} & {name.lower() for name in split[0]}),
    )
    names = [name.lower() for name in written]
    missing = [name for name in needed if name not in names]
    if missing:
        listed = ", ".join(filter(None, names)) or "none"
        raise ValueError(f"no column {', '.join(missing)}; the columns are {listed[:_SHOWN]}")
    wanted = [name for name in dict.fromkeys((*needed, *optional)) if name in names]
    if keep:
        names = [name if name in wanted else own for name, own in zip(names, written, strict=True)]
        wanted = list(dict.fromkeys([*wanted, *filter(None, names)]))
    twice = repeated(name for name in names if name in wanted)
    if twice is not None:
        raise ValueError(f"two columns {twice}")
    try:
        with open_regular(path) as stream:
            table = pa_csv.read_csv(
                stream,
                read_options=pa_csv.ReadOptions(
                    column_names=names,
                    skip_rows=number,
                    encoding=marked_encoding(stream) or "utf-8",
                ),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()),
                    include_columns=wanted,
                    strings_can_be_null=False,
                ),
            )
    except pa.ArrowInvalid:
        check_quotes(path, 0, delimiter)  # refuses also a text that is not UTF-8, with the line
        raise
    check_quotes(path, len(table), delimiter)
    columns = {name: pc.utf8_trim_whitespace(table[name]) for name in wanted}
    for name in needed:
        if empty := pc.sum(pc.equal(columns[name], "")).as_py():
            raise ValueError(f"{empty:,} cells of the column {name} are empty")
    return table.select(wanted) if keep else pa.table(columns)


def check_quotes(path: Path, rows: int, delimiter: str = ",") -> None:
    """Refuse a quote that is not closed in a table that Arrow has read as so many `rows`: Arrow
    takes the rest of the file for one cell, without a word.

    Raises:
        ValueError: there is such a quote.
        DataError: the text is not UTF-8; the message names the line.
    """
    if rows + 1 >= sum(1 for _ in numbered_lines(path)):  # the first line has the names
        return
    lines = (f"{text}\n" for _, text in numbered_lines(path))
    try:
        for _ in csv.reader(lines, delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        raise ValueError(f"{error}. Close each quote") from None


def csv_bytes(columns: pa.Table | Mapping[str, Sequence[object]]) -> bytes:
    """A table as CSV in UTF-8. A text that a spreadsheet would compute, because it is a formula,
    begins with `'`."""
    table = pa.table(columns)
    for place, column in enumerate(table.columns):
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            safe = pc.replace_substring_regex(column.cast("string"), _FORMULA, r"'\1")
            table = table.set_column(place, table.column_names[place], safe)
    stream = pa.BufferOutputStream()
    pa_csv.write_csv(table, stream)
    return bytes(stream.getvalue().to_pybytes())


def _names(header: str, delimiter: str) -> list[str]:
    try:
        (names,) = csv.reader([header], delimiter=delimiter)
    except csv.Error as error:
        alone = "a line ends with a carriage return alone. Save the table as CSV UTF-8"
        raise ValueError(alone if "\r" in header else f"the first line: {error}") from None
    return [name.strip().strip('"').strip() for name in names]
