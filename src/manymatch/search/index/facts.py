"""Facts: the columns of a user's table, joined to the items of an index by their paths."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from manymatch.search.index.stored import OWN
from manymatch.util.csv_table import check_quotes
from manymatch.util.errors import DataError, first_line, repeated
from manymatch.util.parquet_file import check_cells
from manymatch.util.progress import say
from manymatch.util.regular_file import open_regular, regular_path
from manymatch.util.text_lines import marked_encoding, numbered_lines

_KEY = "path"
_SHOWN = 300
"""Characters of the names of the columns in a message."""
_PATHS_AS_TEXT = pyarrow.csv.ConvertOptions(column_types={_KEY: pa.string()})


def add_facts(
    items: pa.Table, file: Path | None, facts: pa.Table | None, earlier: pa.Table | None
) -> pa.Table:
    """The items with the columns of `facts`, else with those of the `earlier` index.

    An item without a row has empty cells.

    Args:
        file, facts: a file and what `read_facts` read there; both None: the earlier facts stay.

    Raises:
        DataError: no row names an item.
    """
    if facts is None:
        if earlier is None:
            return items
        ours = [name for name in items.column_names if name != _KEY]
        facts = earlier.drop_columns([name for name in ours if name in earlier.column_names])
    rows = {path: row for row, path in enumerate(facts[_KEY].to_pylist())}
    wanted = pa.array([rows.get(path) for path in items[_KEY].to_pylist()], pa.int64())
    if file is not None and wanted.null_count == len(items):
        raise DataError(f"{file}: no cell of the column '{_KEY}' is the path of an item")
    unmatched = len(rows) - (len(items) - wanted.null_count)
    if file is not None and unmatched:
        say(f"{file}: {unmatched} of {len(rows)} rows name no item, and are left out")
    for name in facts.column_names:
        if name != _KEY:
            items = items.append_column(name, facts[name].take(wanted))
    return items


def read_facts(file: Path, taken: Iterable[str]) -> pa.Table:
    """The table of facts in `file`. `taken`: the names of facts that items have already.

    Raises:
        DataError: the table cannot be read, has no column `path` or doubled paths, or has a column
            that every index has, or one of `taken`.
    """
    try:
        with regular_path(file) as name:
            if file.suffix.lower() == ".csv":
                for _ in numbered_lines(file):  # Arrow keeps a text that is not UTF-8 as bytes
                    pass
                with open_regular(file) as stream:
                    table = pyarrow.csv.read_csv(
                        stream,
                        pyarrow.csv.ReadOptions(encoding=marked_encoding(stream) or "utf-8"),
                        pyarrow.csv.ParseOptions(newlines_in_values=True),
                        _PATHS_AS_TEXT,
                    )
                check_quotes(file, len(table))
            else:
                table = pq.read_table(name)
            check_cells(table, file)
            if _KEY not in table.column_names:
                raise ValueError(f"the columns are {', '.join(table.column_names)[:_SHOWN]}")
            for number, field in enumerate(table.schema):
                if field.name == _KEY or field.type == pa.string_view():  # Arrow takes no views
                    table = table.set_column(number, field.name, table[number].cast(pa.string()))
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise DataError(
            f"{file}: not a table with a column '{_KEY}' ({first_line(error)}). Name a .csv or "
            ".parquet file"
        ) from None
    names = [name.lower() for name in table.column_names]  # a filter's names have no case
    if (twice := repeated(names)) is not None:
        raise DataError(f"{file}: two columns are called '{twice}', apart from case. Rename one")
    if doubled := sorted(({*OWN, *map(str.lower, taken)} - {_KEY}) & {*names}):
        raise DataError(f"{file}: the index has its own column '{doubled[0]}'. Rename the column")
    if len(table[_KEY].unique()) < len(table):
        raise DataError(f"{file}: a cell of the column '{_KEY}' occurs twice. Keep one row of each")
    return table
