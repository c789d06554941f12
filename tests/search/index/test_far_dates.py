"""Dates that a table may hold and Python does not have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manymatch.util.errors import DataError

from .conftest import Album

FAR = 253_402_300_800 * 10**6
"""The first microsecond of the year 10,000."""


CELLS: list[tuple[pa.Array, Any]] = [
    (pa.array([FAR], pa.timestamp("us")), "10000-01-01 00:00:00.000000"),
    (pa.array([FAR // 10**6], pa.timestamp("s")), "10000-01-01 00:00:00.000"),
    (pa.array([-(10**17)], pa.timestamp("us")), "-1199-02-15 14:13:20.000000"),
    (pa.array([FAR], pa.timestamp("us", "Europe/Berlin")), "10000-01-01 00:00:00.000000Z"),
    (pa.array([FAR - 1], pa.timestamp("us", "Asia/Tokyo")), "9999-12-31 23:59:59.999999Z"),
    (pa.array([0], pa.timestamp("ms", "No/Where")), "1970-01-01 00:00:00.000Z"),
    (pa.array([2**30], pa.date32()), "<value out of range: 1073741824>"),
    (pa.array([2**62], pa.duration("ms")), "4611686018427387904"),
    (pa.array([12_345], pa.time64("ns")), "00:00:00.000012345"),
    (pa.array([[FAR]], pa.list_(pa.timestamp("us"))), ["10000-01-01 00:00:00.000000"]),
    (
        pa.array([{"at": FAR}], pa.struct({"at": pa.timestamp("us", "UTC")})),
        {"at": "10000-01-01 00:00:00.000000Z"},
    ),
    (pa.array([[FAR]], pa.list_view(pa.timestamp("us"))), ["10000-01-01 00:00:00.000000"]),
    (
        pa.array([FAR], pa.timestamp("us")).dictionary_encode(),
        "10000-01-01 00:00:00.000000",
    ),
]
"""Cells of one row, and how they are shown."""


def test_a_date_that_python_does_not_have_is_shown_as_text(album: Album) -> None:
    table = album.root / "far.parquet"
    columns = {f"c{number}": cells for number, (cells, _) in enumerate(CELLS)}
    pq.write_table(pa.table({"path": ["0/00.png"], **columns}), table)
    album.index(table=table)
    index = album.open()
    (result,) = index.search("two dogs", 1, where="path = '0/00.png' and c0 > 2024-01-31").results
    item = index.item(result.id)
    for number, (_, shown) in enumerate(CELLS):
        assert item.facts[f"c{number}"] == shown
        assert item.model_dump(mode="json")["facts"][f"c{number}"] == shown
    assert index.picture(result.id)


def test_a_structure_with_two_fields_of_one_name_is_refused_in_one_line(album: Album) -> None:
    table = album.root / "doubled.parquet"
    cells = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(pa.table({"path": ["0/00.png"], "both": cells}), table)
    album.index(table=table)
    index = album.open()
    (result,) = index.search("two dogs", 1, where="path = '0/00.png'").results
    with pytest.raises(DataError, match="column 'both'"):
        index.item(result.id)
    assert index.picture(result.id)
