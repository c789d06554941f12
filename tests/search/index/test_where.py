"""Filters select items by their columns; a faulty filter is an error of one line."""

from __future__ import annotations

import datetime
import fnmatch
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymatch.search.index.where import included
from manymatch.util.errors import DataError

DAY = 86_400 * 10**9
ITEMS = pa.table(
    {
        "row": [0, 1, 2, 3],
        "path": ["birds/a.jpg", "birds/b_c.png", "cars/x%y.jpg", "über.jpg"],
        "size": [10, 200, 3000, 40_000],
        "mtime_ns": [0, DAY, 2 * DAY, 3 * DAY],
        "colour": ["red", "blue", None, "red"],
        "weight": [0.5, None, 2.0, -1.5],
        "taken": pa.array([datetime.date(2024, 1, day) for day in (1, 2, 3, 4)]),
        "seen": pa.array(
            [datetime.datetime(2024, 1, d, tzinfo=datetime.UTC) for d in (1, 2, 3, 4)],
            pa.timestamp("us", "UTC"),
        ),
        "good": [True, False, True, None],
        "a name": [1, 2, 3, 4],
        "quoted": ["'a'", "a", None, "a'"],
        "captions": [["a"], ["b"], [], ["c"]],
        "long": pa.array(["a", "b", "3", "4"], pa.large_string()),
        "empty": pa.nulls(4),
    }
)


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ('path like "birds/*"', [0, 1]),
        ("path like '*.jpg' and size > 100", [2, 3]),
        ('path like "*_*"', [1]),
        ('path like "*%*"', [2]),
        ('path like "?ber.jpg"', [3]),
        ("size <= 200", [0, 1]),
        ("size = 200 or size == 3000", [1, 2]),
        ("not size < 3000 and not good == true", []),
        ('colour == "red"', [0, 3]),
        ('colour != "red"', [1]),
        ('not colour == "red"', [1]),
        ("colour == '\"red'", []),
        ("quoted == \"'a'\"", [0]),
        ('colour in ("blue", "green") or weight < -1', [1, 3]),
        ("size in (10, 3000)", [0, 2]),
        ("date >= 1970-01-02 and date < 1970-01-03T12:00", [1, 2]),
        ("taken > 2024-01-02", [2, 3]),
        ('taken == "2024-01-02"', [1]),
        ("seen < 2024-01-02", [0]),
        ("good == true", [0, 2]),
        ("`a name` >= 3", [2, 3]),
        ("size > 100 and (path like 'cars/*' or good == false)", [1, 2]),
        ("long == 3 or long like 'b*' or empty == 'x' or empty > 2024-01-02", [1, 2]),
        ("size > 1.5 or size > 2 and size > 100000", [0, 1, 2, 3]),
    ],
)
def test_filters(expression: str, rows: list[int]) -> None:
    assert included(expression, ITEMS).nonzero()[0].tolist() == rows


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "column"),
        ("size", "more"),
        ("size >", "more"),
        ("sise > 1", "did you mean 'size'"),
        ("row == 1", "no column"),
        ("size ~ 1", "unexpected"),
        ("size like 1", "text"),
        ("size > 'big'", "size"),
        ("taken > 2024-13-45", "taken"),
        ("captions == 'a'", "captions"),
        ("size > 1 size", "unexpected 'size'"),
        ("(size > 1", "expected '\\)'"),
        ("colour == red", "Quote"),
        ("size > " + "9" * 400, "size"),
        ("(" * 200 + "size > 1" + ")" * 200, "nested"),
        ("not " * 400 + "size > 1", "nested"),
        ("x" * 3000, "characters"),
        ("__import__('os').system('true')", "unexpected"),
    ],
)
def test_faulty_filters_are_one_line(expression: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as raised:
        included(expression, ITEMS)
    assert str(raised.value).isprintable()


@given(st.text(alphabet="ab/.%_\\*?[", max_size=8))
def test_patterns_are_those_of_file_names(glob: str) -> None:
    names = ["", "a", "ab", "a/b", "a.b", "%", "_", "\\", "a\\b", "[a", "a%b", "*", "?"]
    regular = fnmatch.translate(glob.replace("[", "[[]"))
    expected = [bool(re.match(regular, name)) for name in names]
    assert included(f'path like "{glob}"', pa.table({"path": names})).tolist() == expected


@given(st.text(max_size=60))
def test_no_text_is_a_traceback(expression: str) -> None:
    try:
        included(expression, ITEMS)
    except DataError as error:
        assert str(error).isprintable()
