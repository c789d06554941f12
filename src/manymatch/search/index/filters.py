"""Filters: conditions of SQL's WHERE that select items of an index by their columns.

    path glob 'birds/*' and (date >= 2024-01-31 or not size < 1000) and colour in ('red', 'blue')

SQLite evaluates them in memory. Filters come from requests, so that a filter reads the columns of
the items, calls a few functions, and does nothing else. In addition to SQL, a date needs no
quotation marks, and a text in double quotes that is no column is a text. `date` is the day and time
(UTC) at which the file was changed, unless a table brought a column of this name.
"""

import re
import sqlite3
import threading
import time
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from manymatch.util.errors import DataError, first_line, nearest, printable

_LONGEST = 2_000
_SECONDS = 5.0
"""Processor time after which a filter ends."""
_STEPS_BETWEEN_LOOKS = 1_000
"""Steps of SQLite's virtual machine."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 2**24,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
}
"""The bytes of a text on the way, and the bytes of a pattern."""
_FUNCTIONS = frozenset(
    ("like", "glob", "lower", "upper", "length", "substr", "instr", "abs", "round", "coalesce")
)
_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\]
    | (?<![\w.])\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?(?![\w.])""",
    re.VERBOSE,
)
"""What a translation reads: texts, names in quotation marks, dates."""
_GLOB_AS_LIKE = re.compile(r"\blike\s*'([^'%_]*[*?][^'%_]*)'", re.IGNORECASE)
_FIRST, _LAST = "0001-01-01", "9999-12-31"
"""The first and the last day that a filter tells apart."""


class Filters:
    """The items of an index, to be selected by their columns. Several threads may use an object."""

    def __init__(self, items: pa.Table) -> None:
        self._items = items
        self._lock = threading.Lock()
        self._filled: set[str] = set()
        self._read: set[str] = set()
        self._selects, self._began = 0, 0.0

    def included(self, expression: str) -> NDArray[np.bool_]:
        """`(n,)` whether each item fulfils the expression.

        Raises:
            DataError: the expression is faulty, names an unknown column, or takes too long.
        """
        if not isinstance(expression, str):
            raise DataError(f"the filter is a {type(expression).__name__}, not a text")
        if len(expression) > _LONGEST:
            raise DataError(f"the filter has {len(expression):,} characters, at most {_LONGEST:,}")
        try:
            with self._lock:
                rows = self._rows(self._translated(expression))
        except (sqlite3.Error, sqlite3.Warning, ValueError, pa.ArrowException) as error:
            raise DataError(
                f"the filter {expression!r}: {self._fault(error)}. Write, for example: "
                "path glob 'birds/*' and date >= 2024-01-31"
            ) from None
        selected = np.zeros(len(self._items), np.bool_)
        selected[rows] = True
        return selected

    def _rows(self, condition: str) -> list[int]:
        """The rows that fulfil the condition. Only columns that a filter reads are in SQLite."""
        query = f"SELECT row FROM items WHERE ({condition}\n)"
        self._read.clear()
        self._execute(f"EXPLAIN {query}")  # tells the columns, and runs nothing
        with suppress(sqlite3.Error):  # as it should be without the last parenthesis
            self._execute(f"EXPLAIN {query[:-1]}")
            raise ValueError("a comment or a parenthesis is not closed")
        try:  # "1) LIMIT (3" is a condition with an end, and nothing at another place
            self._execute(f"EXPLAIN SELECT CASE WHEN ({condition}\n) THEN row END FROM items")
        except sqlite3.Error:
            raise ValueError("a parenthesis is closed that the filter does not open") from None
        if not self._read <= self._filled:
            self._fill(self._filled | self._read)
        return [row for (row,) in self._execute(query)]

    def _execute(self, query: str) -> list[Any]:
        self._selects, self._began = 0, time.thread_time()
        return self._table.execute(query).fetchall()

    @cached_property
    def _table(self) -> sqlite3.Connection:
        table = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, cached_statements=0
        )
        columns = ", ".join(f"{_quoted(name)} {_sql_type(of)}" for name, of in self._types.items())
        table.execute(f"CREATE TABLE items ({columns})")
        for limit, most in _LIMITS.items():
            table.setlimit(limit, most)
        self._guard(table)
        return table

    def _guard(self, table: sqlite3.Connection) -> None:
        """Bound what filters do in the table, and for how long."""
        table.set_progress_handler(
            lambda: time.thread_time() - self._began > _SECONDS, _STEPS_BETWEEN_LOOKS
        )
        table.set_authorizer(self._authorised)

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        """The columns of the table. SQL's names have no case, so the first of two names counts."""
        fields = [(field.name, field.type) for field in self._items.schema]
        known = {"date": ("date", pa.timestamp("ns"))}
        known |= {name.lower(): (name, of) for name, of in reversed(fields) if _sql_type(of)}
        return dict(known.values())

    def _fill(self, names: set[str]) -> None:
        names = names & self._types.keys()
        columns = [_cells(self._column(name)).to_pylist() for name in names]
        into = ", ".join(map(_quoted, names))
        marks = ", ".join("?" * len(columns))
        self._table.set_authorizer(None)
        self._table.set_progress_handler(None, 0)  # filling may take longer than a filter
        try:
            with self._table:  # all or nothing
                self._table.execute("BEGIN")
                self._table.execute("DELETE FROM items")
                self._table.executemany(
                    f"INSERT INTO items ({into}) VALUES ({marks})", zip(*columns, strict=True)
                )
            self._filled = names
        finally:
            self._guard(self._table)

    def _column(self, name: str) -> pa.ChunkedArray:
        if name in self._items.column_names:
            return self._items[name]
        changed = self._items["mtime_ns"]
        known = pc.if_else(pc.equal(changed, 0), pa.scalar(None, changed.type), changed)
        return known.cast(pa.timestamp("ns"))

    def _authorised(self, action: int, first: Any, second: Any, *_: object) -> int:
        """Allow one SELECT, which reads columns of the items and calls the known functions."""
        self._selects += action == sqlite3.SQLITE_SELECT
        if action == sqlite3.SQLITE_READ and first == "items" and second in self._types:
            self._read.add(second)
            return sqlite3.SQLITE_OK
        known = action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS
        only = action == sqlite3.SQLITE_SELECT and self._selects == 1
        return sqlite3.SQLITE_OK if known or only else sqlite3.SQLITE_DENY

    def _translated(self, expression: str) -> str:
        """The expression in SQL."""

        def translated(match: re.Match[str]) -> str:
            token = match[0]
            name = token[1:-1].replace('""', '"')
            if token[0] == '"' and name.lower() not in map(str.lower, self._types):
                if name.lower() in map(str.lower, self._items.column_names):
                    raise ValueError(f"column '{name}' has no values that a filter reads")
                return "'" + name.replace("'", "''") + "'"
            if token[0].isdigit():
                _check_date(token)
                return f"'{token}:00'" if len(token) == len("2024-01-31T12:00") else f"'{token}'"
            return token

        condition = _TOKEN.sub(translated, expression)
        if pattern := _GLOB_AS_LIKE.search(condition):
            raise ValueError(f"'like' has the signs % and _. Write: glob '{pattern[1]}'")
        return condition

    def _fault(self, error: Exception) -> str:
        fault = printable(first_line(error)).rstrip(".")
        hidden = re.fullmatch(r"access to items\.(.*) is prohibited", fault)  # such as rowid
        if name := hidden[1] if hidden else fault.partition("no such column: ")[2]:
            return f"no column '{name}'{nearest(name, self._types)}. Quote a text: '{name}'"
        late = f"it takes more than {_SECONDS:g} s"
        known = {"not authorized": "a filter has no SELECT", "interrupted": late}
        return known.get(fault, fault)


def _check_date(text: str) -> None:
    """Refuse a day or a time that there is not, such as 2024-02-30: a `ValueError`."""
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text} is no date ({error})") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_type(of: pa.DataType) -> str:
    """The type of a column in SQL; "" for columns that filters do not read."""
    types = pa.types
    if types.is_dictionary(of):
        return _sql_type(of.value_type)
    if types.is_uint64(of) or types.is_floating(of) or types.is_decimal(of):
        return "REAL"
    if types.is_integer(of) or types.is_boolean(of) or types.is_duration(of):
        return "INTEGER"
    texts = types.is_string(of) or of in (pa.large_string(), pa.string_view(), pa.null())
    return "TEXT" if texts or types.is_temporal(of) else ""


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The cells as SQLite takes them. A time is a text such as 2024-01-31T12:00:00, in UTC."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    of, sql = column.type, _sql_type(column.type)
    if pa.types.is_timestamp(of) or pa.types.is_date(of):
        seconds = column.cast(pa.timestamp("s"), safe=False)
        first, last = (pa.scalar(day).cast(seconds.type) for day in (_FIRST, _LAST))
        within = pc.min_element_wise(seconds, last, skip_nulls=False)
        within = pc.max_element_wise(within, first, skip_nulls=False)
        return pc.strftime(within, "%Y-%m-%d" if pa.types.is_date(of) else "%Y-%m-%dT%H:%M:%S")
    if pa.types.is_duration(of) or pa.types.is_boolean(of):
        return column.cast(pa.int64())
    to = {"REAL": pa.float64(), "INTEGER": pa.int64(), "TEXT": pa.string()}[sql]
    return column.cast(to, safe=sql != "REAL")
