"""Expressions that select items of an index by their columns.

    path like "birds/*" and (date >= 2024-01-31 or not size < 1000) and colour in ("red", "blue")

A comparison is COLUMN OPERATOR VALUE, with the operators == != < <= > >=, `like` for a pattern with
* and ?, and `in`. A value is a number, a quoted text, a date, true or false. `date` is the day and
time (UTC) at which the file was changed, unless a table brought a column of this name. A name with
other signs than letters, digits and _ stands in `backquotes`. An empty cell fulfils no comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from manymatch.util.errors import DataError, first_line, nearest

_LONGEST = 2_000
_DEEPEST = 50
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"[^"]*"|'[^']*')
      | (?P<date>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<name>[^\W\d]\w*|`[^`]+`)
      | (?P<sign>==|!=|<=|>=|[=<>(),])
    )""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "=": pc.equal,
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def included(expression: str, items: pa.Table) -> NDArray[np.bool_]:
    """(n,) whether each item fulfils the expression.

    Raises:
        DataError: the expression is faulty, or names an unknown column.
    """
    if not isinstance(expression, str):
        raise DataError(f"the filter is a {type(expression).__name__}, not a text")
    if len(expression) > _LONGEST:
        raise DataError(f"the filter has {len(expression):,} characters, at most {_LONGEST:,}")
    selected = _Expression(expression, items).value()
    return pc.fill_null(selected, False).to_numpy()


class _Expression:
    """A parser that computes while it reads; see the grammar above."""

    def __init__(self, text: str, items: pa.Table) -> None:
        self._text, self._items = text, items
        self._tokens: list[tuple[str, str]] = []
        self._at = self._depth = 0
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                self._refuse(f"unexpected {text[at:].strip()[:20]!r}")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()

    def value(self) -> pa.ChunkedArray:
        result = self._any()
        if self._at < len(self._tokens):
            self._refuse(f"unexpected '{self._next()[1]}'")
        return result

    def _any(self) -> Any:
        result = self._all()
        while self._take("or"):
            result = pc.or_kleene(result, self._all())
        return result

    def _all(self) -> Any:
        result = self._one()
        while self._take("and"):
            result = pc.and_kleene(result, self._one())
        return result

    def _one(self) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse("too many nested parts")
        if self._take("not"):
            result = pc.invert(self._one())
        elif self._take("("):
            result = self._any()
            self._expect(")")
        else:
            result = self._comparison()
        self._depth -= 1
        return result

    def _comparison(self) -> Any:
        name = self._next("name")[1].strip("`")
        try:
            column = self._column(name)
            operator = self._next()[1]
            if operator == "like":
                return pc.match_substring_regex(
                    column.cast(pa.string()), _pattern(self._next("text")[1][1:-1])
                )
            if operator == "in":
                self._expect("(")
                result = pc.equal(column, self._literal(column.type))
                while self._take(","):
                    result = pc.or_kleene(result, pc.equal(column, self._literal(column.type)))
                self._expect(")")
                return result
            if operator not in _COMPARISONS:
                self._refuse(f"'{operator}' is not an operator{nearest(operator, _OPERATORS)}")
            return _COMPARISONS[operator](column, self._literal(column.type))
        except (pa.ArrowException, OverflowError) as error:
            self._refuse(f"column '{name}': {first_line(error)}")

    def _column(self, name: str) -> pa.ChunkedArray:
        names = [known for known in self._items.column_names if known != "row"]
        if name in names:
            column = self._items[name]
            if pa.types.is_timestamp(column.type) and column.type.tz:
                return column.cast(pa.timestamp("us"))  # UTC
            if column.type in _TEXTS:
                return column.cast(pa.string())
            return column
        if name != "date":
            self._refuse(f"no column '{name}'{nearest(name, [*names, 'date'])}")
        changed = self._items["mtime_ns"]
        known = pc.if_else(pc.equal(changed, 0), pa.scalar(None, changed.type), changed)
        return known.cast(pa.timestamp("ns"))

    def _literal(self, wanted: pa.DataType) -> pa.Scalar:
        kind, text = self._next()
        if kind == "number":
            value = pa.scalar(float(text) if "." in text else int(text))
            return value.cast(wanted) if pa.types.is_string(wanted) else value
        if kind == "name" and text in ("true", "false"):
            return pa.scalar(text == "true")
        if kind not in ("text", "date"):
            self._refuse(f"expected a value instead of '{text}'. Quote a text")
        return pa.scalar(text[1:-1] if kind == "text" else text).cast(wanted)

    def _take(self, word: str) -> bool:
        taken = self._tokens[self._at : self._at + 1] in ([("name", word)], [("sign", word)])
        self._at += taken
        return taken

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            self._refuse(f"expected '{sign}'")

    def _next(self, kind: str | None = None) -> tuple[str, str]:
        token = self._tokens[self._at] if self._at < len(self._tokens) else ("", "the end")
        if token[0] != (kind or token[0]) or not token[0]:
            self._refuse(f"expected {_NAMES.get(kind or '', 'more')} instead of {token[1]}")
        self._at += 1
        return token

    def _refuse(self, problem: str) -> NoReturn:
        raise DataError(
            f"the filter {self._text!r}: {problem}. Write, for example: "
            'path like "birds/*" and date >= 2024-01-31'
        )


_TEXTS = (pa.large_string(), pa.string_view(), pa.null())
"""Other types of texts; a column with empty cells alone has the type `null`."""
_OPERATORS = [*_COMPARISONS, "like", "in"]
_NAMES = {"name": "a column", "text": "a text in quotation marks"}


def _pattern(glob: str) -> str:
    """The regular expression of a pattern with * and ?. Arrow's `match_like` misreads some patterns
    that end with a backslash."""
    signs = {"*": ".*", "?": "."}
    return rf"(?s)\A{''.join(signs.get(sign, re.escape(sign)) for sign in glob)}\z"
