"""No damaged table is read as another table."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_files import flipped_bits

from manymatch.util.errors import DataError
from manymatch.util.parquet_file import (
    foreign_rows,
    open_table,
    python_cells,
    read_table,
    table_writer,
)
from manymatch.util.seal import sealed

SCHEMA = pa.schema(
    [("caption_id", pa.string()), ("labels", pa.list_(pa.int64()))], {"complete": "true"}
)
ROWS = pa.table(
    [[f"caption {n}" for n in range(300)], [[n, n % 7] for n in range(300)]], schema=SCHEMA
)


@pytest.fixture
def path(tmp_path):
    with (
        sealed(tmp_path / "table.parquet") as partial,
        table_writer(partial, SCHEMA) as writer,
    ):
        writer.write_table(ROWS)
        writer.write_table(ROWS)
    return tmp_path / "table.parquet"


def test_every_flipped_bit_is_one_line(path):
    expected = read_table(path, SCHEMA)
    for at in flipped_bits(path, 10):
        for read in (
            lambda: read_table(path, SCHEMA),
            lambda: open_table(path, SCHEMA.names, "captions").read(),
        ):
            try:
                table = read()
            except DataError as error:
                assert str(path) in str(error) and "\n" not in str(error)
            else:
                assert table.equals(expected, check_metadata=True), at


def test_cells_of_another_program_become_pythons(path):
    times = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns", "UTC"))
    rows = python_cells(pa.table({"time": times, "text": ["a", None]}), path).to_pylist()
    time = datetime(2023, 11, 14, 22, 13, 20, 123456, UTC)
    assert rows == [{"time": time, "text": "a"}, {"time": None, "text": None}]
    with pytest.raises(DataError, match=r"table\.parquet.*UTF-8"):
        python_cells(pa.table({"text": pa.array([b"\xff"]).view(pa.string())}), path)


def test_a_damaged_page_of_another_programs_table_is_one_line(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(ROWS, path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = path.read_bytes()
    for damaged in (content.replace(b"caption 217", b"caption 218"), b"", b"PAR1"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="not a table"):
            read_table(path, SCHEMA)


@pytest.mark.parametrize("nested", [True, False])
def test_equal_large_cells_are_in_memory_one_at_a_time(tmp_path, nested):
    """Kilobytes, whose 24 rows have 6 MB each."""
    cell = bytes(6 * 2**20)
    rows = [{"image": {"bytes": cell} if nested else cell}] * 24
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", compression="zstd")
    del rows
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    before, most, count = pa.total_allocated_bytes(), 0, 0
    for _ in foreign_rows(tmp_path / "x.parquet"):
        most, count = max(most, pa.total_allocated_bytes() - before), count + 1
    assert count == 24 and most < 5 * len(cell)


def test_a_column_that_unpacks_to_very_much_is_refused(tmp_path):
    rows = pa.table({"caption": ["a" * 2**24] * 5})
    path = tmp_path / "x.parquet"
    pq.write_table(rows, path, compression="zstd", use_dictionary=False)
    with pytest.raises(DataError, match=r"column caption unpacks from [\d,]+ to 83,"):
        next(foreign_rows(path))
