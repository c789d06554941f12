"""Tables of people and other programs in CSV files."""

import csv

import pytest

from manymatch.util.csv_table import read_csv

ROWS = [("a", "one\nline, another"), ("b", 'says "two"')]


def _written(path, rows, encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as stream:
        csv.writer(stream).writerows([("id", "note"), *rows])
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [("id,note\ra,b\r", "carriage return alone"), ("x" * 200_000, "first line: field larger")],
)
def test_a_faulty_first_line(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    with pytest.raises(ValueError, match=message):
        read_csv(path, ["id"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encodings_of_spreadsheets(tmp_path, encoding):
    table = read_csv(_written(tmp_path / "t.csv", ROWS, encoding), ["id"], ["note"])
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


def test_the_name_of_a_column_may_hold_the_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"id" ,"note, free; or none"\na,b\n')
    assert read_csv(path, ["id"], keep=True).to_pylist() == [
        {"id": "a", "note, free; or none": "b"}
    ]


def test_cells_of_several_lines_in_a_table_that_arrow_reads_in_several_blocks(tmp_path):
    rows = [(str(number), "one\nline, another") for number in range(60_000)]
    path = _written(tmp_path / "t.csv", rows)
    assert path.stat().st_size > 2**20
    assert read_csv(path, ["id"])["id"].to_pylist() == [name for name, _ in rows]
    rows = [("a", "b")] * 30_000
    lines = _written(path, rows).read_bytes()
    path.write_bytes(lines + b'a,"b\r\n' + lines * 10)
    with pytest.raises(ValueError, match="Close each quote"):
        read_csv(path, ["id"])
