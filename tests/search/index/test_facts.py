"""Facts about items from a user's table: any cell is shown, and a fault of the table is named."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manymatch.search.index.facts import add_facts, read_facts
from manymatch.util.errors import DataError

FAR = 253_402_300_800 * 10**6
"""The first microsecond of the year 10,000."""


CELLS = [
    (pa.array([FAR], pa.timestamp("us")), "10000-01-01 00:00:00.000000"),
    (pa.array([-(10**17)], pa.timestamp("us")), "-1199-02-15 14:13:20.000000"),
    (pa.array([FAR - 1], pa.timestamp("us", "Asia/Tokyo")), "9999-12-31 23:59:59.999999Z"),
    (pa.array([0], pa.timestamp("ms", "No/Where")), "1970-01-01 00:00:00.000Z"),
    (pa.array([2**30], pa.date32()), "<value out of range: 1073741824>"),
    (pa.array([2**62], pa.duration("ms")), "4611686018427387904"),
    (pa.array([12_345], pa.time64("ns")), "00:00:00.000012345"),
    (pa.array(["a"], pa.string_view()), "a"),
    (pa.array([[FAR]], pa.list_view(pa.timestamp("us"))), ["10000-01-01 00:00:00.000000"]),
    (
        pa.array([{"at": FAR}], pa.struct({"at": pa.timestamp("us", "UTC")})),
        {"at": "10000-01-01 00:00:00.000000Z"},
    ),
]
"""Cells of one row, and how they are shown."""


def test_facts_of_other_programs_are_shown(album):
    """Also dates that Python does not have."""
    table = album.root / "facts.parquet"
    columns = {f"c{number}": cells for number, (cells, _) in enumerate(CELLS)}
    columns["time"] = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    pq.write_table(
        pa.table({"path": ["0/00.png"], "icon": [b"\xff"], "text": [1], **columns}), table
    )
    album.index(table=table)
    index = album.open()
    (result,) = index.search("two dogs", 1, where="path = '0/00.png' and c0 > 2024-01-31").results
    item = index.item(result.id)
    for number, (_, shown) in enumerate(CELLS):
        assert item.facts[f"c{number}"] == shown
        assert item.model_dump(mode="json")["facts"][f"c{number}"] == shown
    assert item.facts["time"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 123456)
    assert item.facts["text"] == 1 and result.text is None
    assert item.model_dump(mode="json")["facts"]["icon"] == "_w=="

    note = pa.array([b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"path": ["0/00.png"], "note": note}), table)
    with pytest.raises(DataError, match=r"facts\.parquet.*UTF-8"):
        album.index(table=table)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_cells_of_several_lines_and_files_of_other_encodings_are_read(encoding, tmp_path):
    """Arrow reads blocks of a megabyte, and one may end inside a cell."""
    rows = [f'{number}.jpg,{number},"{number}\r\n{"ä" * 300}"\r\n' for number in range(3000)]
    (tmp_path / "facts.csv").write_bytes(("path,number,note\r\n" + "".join(rows)).encode(encoding))
    table = read_facts(tmp_path / "facts.csv", ())
    assert (
        table["number"].to_pylist() == [*range(3000)] and table["note"][1].as_py()[:4] == "1\r\nä"
    )


def test_paths_of_numbers_stay_texts(tmp_path, capsys):
    table = tmp_path / "facts.csv"
    table.write_text("path,number\n000123,1\n,2\n")
    items = pa.table({"path": ["000123", "123"]})
    facts = read_facts(table, [])
    assert add_facts(items, table, facts, None)["number"].to_pylist() == [1, None]
    assert "facts.csv: 1 of 2 rows name no item, and are left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"number\n1", ""),
        (b"path,size\na.jpg,2", ""),
        (b"path,a,a\na.jpg,1,2", ""),
        (b"path,Colour,colour\na.jpg,1,2", ".*'colour', apart from case"),
        (b"path,Size\na.jpg,L", ".*own column 'size'"),
        (b"path\na.jpg\na.jpg", ""),
        (b"path\nx", ""),
        (b'path,note\na.jpg,"two\nlines"\nb.jpg,"open\n', ".*Close each quote"),
        (b"path;year\na.jpg;1\n", ".*the columns are path;year"),
        (b"path,place\na.jpg,x\nb.jpg,caf\xe9\n", "3: byte 0xe9 .*iconv"),
        (None, ".*no such file"),
    ],
)
def test_a_fault_of_the_table_is_named(content, fault, tmp_path):
    table = tmp_path / "facts.csv"
    if content is not None:
        table.write_bytes(content)
    with pytest.raises(DataError, match=rf"facts\.csv:{fault}"):
        items = pa.table({"path": ["a.jpg", "b.jpg"], "size": [1, 1]})
        add_facts(items, table, read_facts(table, items.column_names), None)
