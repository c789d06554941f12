"""Filters select items by their columns; a faulty filter is an error of one line."""

import datetime

import pyarrow as pa
import pytest

from manymatch.search.index import filters
from manymatch.search.index.filters import Filters
from manymatch.util.errors import DataError

DAY = 86_400 * 10**9
FAR = 253_402_300_800 * 10**6
"""The first microsecond of the year 10,000."""
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
        "until": pa.array([FAR, -FAR, None, 0], pa.timestamp("us", "No/Where")),
        "good": [True, False, True, None],
        "a name": [1, 2, 3, 4],
        'with "quotes"': [1, 2, 3, 4],
        "quoted": ["'a'", "a", None, "a'"],
        "captions": [["a"], ["b"], [], ["c"]],
        "long": pa.array(["a", "b", "3", "4"], pa.large_string()),
        "empty": pa.nulls(4),
        "Size": [1, 1, 1, 1],
        "kind": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "huge": pa.array([2**64 - 1, 0, 1, 2], pa.uint64()),
        "took": pa.array([1, 2, 3, None], pa.duration("ms")),
    }
)
SELECT = Filters(ITEMS)


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        ("path glob 'birds/*'", [0, 1]),
        ("path glob '*.jpg' and size > 100", [2, 3]),
        ("path glob '?ber.jpg' or path like '%X\\%y%' escape '\\'", [2, 3]),
        ("size = 200 or size == 3000", [1, 2]),
        ("not size < 3000 and not good == true", []),
        ('colour == "red"', [0, 3]),
        ("not colour == 'red'", [1]),
        ("colour is null", [2]),
        ("quoted == \"'a'\" or quoted = 'a'''", [0, 3]),
        ('colour in ("blue", "green") or weight < -1', [1, 3]),
        ("size between 10 and 3000 and lower(path) like 'CARS%'", [2]),
        ("date >= 1970-01-02 and date < 1970-01-03T12:00", [1, 2]),
        ("taken > 2024-01-02 and taken != '2024-01-04'", [2]),
        ("seen < 2024-01-02", [0]),
        ("until > 2024-01-31", [0]),
        ("until < 1969-01-01", [1]),
        ('`a name` >= 3 and "a name" < 4 and [a name] = 3', [2]),
        ('"with ""quotes""" > 2 and "a ""text""" = \'a "text"\'', [2, 3]),
        ("size > 100 and (path glob 'cars/*' or good == false)", [1, 2]),
        ("long == 3 or long like 'b%' or empty == 'x' or empty > 2024-01-02", [1, 2]),
        ("kind = 'x' and took < 3 or huge > 100", [0]),
        ("'a date 2024-01-31' = 'a date 2024-01-31' and size = 10 -- a comment", [0]),
    ],
)
def test_filters(expression, rows):
    assert SELECT.included(expression).nonzero()[0].tolist() == rows


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "syntax"),
        ("sise > 1", "did you mean 'size'"),
        ("colour == red", "Quote"),
        ("captions == 'a'", "no column"),
        ('"captions" is null', "no values that a filter reads"),
        ("1) limit 1 /*", "not closed"),
        ("path like 'birds/*'", "glob"),
        ("(size > 1", "incomplete"),
        ("size > ?", "binding"),
        ("not " * 400 + "size > 1", ""),
        ("x" * 3000, "characters"),
        ("size > 1; drop table items", "syntax"),
        ("1) union select sql from sqlite_master where (1", "prohibited"),
        ("size > 0) limit (1", "does not open"),
        ("size > 0) group by (path", "does not open"),
        ("1) then 1 end, case when (1", "syntax"),
        ("rowid > 1", "no column 'ROWID'"),
        ("date > 2024-02-30", "2024-02-30 is no date"),
        ("date > 2024-01-31T25:00", "is no date"),
        ("size in (select 1)", "SELECT"),
        ("size in (with recursive n(i) as (select 1 union select i + 1 from n) select 1)", ""),
        ("load_extension('x')", "function"),
        ("length(randomblob(1000000000)) > 1", "function"),
        ("path = '\0'", ""),
        ("path = '\ud800'", ""),
    ],
)
def test_faulty_and_hostile_filters_are_one_line(expression, words):
    try:
        SELECT.included(expression)
    except DataError as error:
        assert words in str(error) and str(error).isprintable()
    else:
        assert not words
    assert SELECT.included("size > 100").sum() == 3


def test_a_filter_that_takes_too_long_ends_and_a_column_is_read_whole(monkeypatch):
    """The bound is of filters. Else filters after the first would read nothing, and do anything."""
    monkeypatch.setattr(filters, "_SECONDS", 0.01)
    many = pa.table({"row": range(50_000), "mtime_ns": [0] * 50_000, "size": range(50_000)})
    select = Filters(many)
    assert select.included("size = 5").nonzero()[0].tolist() == [5]
    with pytest.raises(DataError, match="SELECT"):
        select.included("size in (select 1)")
    monkeypatch.setattr(filters, "_SECONDS", 0.001)
    with pytest.raises(DataError, match="more than"):
        select.included(" or ".join(["row < 0"] * 90))


def test_a_table_may_bring_a_date_and_the_first_of_two_names_counts():
    items = pa.table({"row": [0, 1], "mtime_ns": [0, 0], "Date": [1, 2], "DATE": [3, 4]})
    assert Filters(items).included("date = 2").tolist() == [False, True]
