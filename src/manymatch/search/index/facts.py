"""Facts about the items of an index: further columns, from a table of the user."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from manymatch.search.index.stored import OWN
from manymatch.util.errors import DataError, first_line
from manymatch.util.parquet_file import check_cells
from manymatch.util.progress import say
from manymatch.util.regular_file import regular_path
from manymatch.util.text_lines import numbered_lines

_KEY = "path"
_SHOWN = 300
"""Characters of the names of the columns in a message."""
_PATHS_AS_TEXT = pyarrow.csv.ConvertOptions(column_types={_KEY: pa.string()})


def add_facts(items: pa.Table, file: Path | None, earlier: pa.Table | None) -> pa.Table:
    """The items with the columns of the table in `file`, else with those of the `earlier` index.

    An item without a row has empty cells.

    Raises:
        DataError: the table cannot be read, has no column `path` or doubled paths, or has a column
            that every index has.
    """
    if file is not None:
        facts = _read(file, items.column_names)
    elif earlier is not None:
        ours = [name for name in items.column_names if name != _KEY]
        facts = earlier.drop_columns([name for name in ours if name in earlier.column_names])
    else:
        return items
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


def _read(file: Path, taken: list[str]) -> pa.Table:
    try:
        with regular_path(file) as name:
            if file.suffix.lower() == ".csv":
                for _ in numbered_lines(file):  # Arrow keeps a text that is not UTF-8 as bytes
                    pass
                table = pyarrow.csv.read_csv(name, convert_options=_PATHS_AS_TEXT)
            else:
                table = pq.read_table(name)
            check_cells(table, file)
            if _KEY not in table.column_names:
                raise ValueError(f"the columns are {', '.join(table.column_names)[:_SHOWN]}")
            table = table.set_column(
                table.column_names.index(_KEY), _KEY, table[_KEY].cast(pa.string())
            )
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise DataError(
            f"{file}: not a table with a column '{_KEY}' ({first_line(error)}). Name a .csv or "
            ".parquet file"
        ) from None
    if len(set(table.column_names)) < len(table.column_names):
        raise DataError(f"{file}: two columns have the same name. Rename one")
    if doubled := sorted({*OWN, *taken} - {_KEY} & set(table.column_names)):
        raise DataError(f"{file}: the index has its own column '{doubled[0]}'. Rename the column")
    if len(table[_KEY].unique()) < len(table):
        raise DataError(f"{file}: a cell of the column '{_KEY}' occurs twice. Keep one row of each")
    return table
