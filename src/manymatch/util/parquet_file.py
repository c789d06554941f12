"""Tables that an earlier stage or another program wrote.

Parquet's page checksums leave out the footer and the headers of the pages, where a flipped bit
gives another table. So a stage seals its tables (`util.seal`). Tables of other programs have no
seal and are read without one.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.util.errors import DataError, first_line, repeated
from manymatch.util.regular_file import regular_path
from manymatch.util.seal import check_if_sealed

_MOST_ROWS, _MOST_BYTES = 64, 2**22
"""Limits for the table of another program in memory."""
_UNPACKED, _RATIO = 2**26, 100
"""A column of pictures or captions unpacks to this number of bytes, or to this multiple."""
_REPEATED = 20
"""A column that unpacks to more than this multiple may have very large equal cells."""


def table_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a table whose pages have checksums."""
    return pq.ParquetWriter(path, schema, write_page_checksum=True)


def check_cells(rows: pa.Table, path: Path) -> None:
    """Refuse rows of another program's table at `path`: a `DataError` for a damaged cell, or a text
    that is not UTF-8."""
    try:
        rows.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: a damaged cell ({first_line(error)}). Write the table again, with texts in "
            "UTF-8"
        ) from None


def python_cells(rows: pa.Table, path: Path) -> pa.Table:
    """Rows of another program's table at `path` in types that Python has.

    Times are in microseconds. If a column has a time that Python does not have, such as one of the
    year 10,000, all times of the column are texts, in UTC.

    Raises:
        DataError: a text is not UTF-8, or a cell is damaged or has no Python value.
    """
    check_cells(rows, path)
    for number, field in enumerate(rows.schema):
        if any(is_kind(field.type) for is_kind in _CHANGED):
            try:
                rows = rows.set_column(number, field.name, _python_times(rows[number]))
            except (pa.ArrowException, ValueError, OverflowError) as error:
                raise DataError(
                    f"{path}: column '{field.name}' ({field.type}) cannot be read "
                    f"({first_line(error)}). Write the column as text"
                ) from None
    return rows


_CHANGED = (pa.types.is_temporal, pa.types.is_nested, pa.types.is_dictionary)


def _python_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        column.to_pylist()
    except (OverflowError, ValueError, LookupError):  # LookupError: an unknown time zone
        column = column.cast(_typed(column.type, False)).cast(_typed(column.type, True))
        column.to_pylist()  # a structure with two fields of one name has no Python value
    return column


def _typed(kind: pa.DataType, text: bool) -> pa.DataType:
    """`kind` with texts in place of the times in it, or with times in UTC."""
    if pa.types.is_dictionary(kind):
        return _typed(kind.value_type, text)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_typed(field.type, text)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_typed(kind.key_type, text), _typed(kind.item_type, text))
    if pa.types.is_nested(kind):  # a list of any form
        return pa.list_(_typed(kind.value_type, text))
    if pa.types.is_temporal(kind) and text:
        return pa.string()
    zoned = pa.types.is_timestamp(kind) and kind.tz
    return pa.timestamp(kind.unit, "UTC") if zoned else kind


def foreign_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of another program's table, one at a time, as Python values.

    Memory holds the cells of at most 64 rows, and of fewer rows if the cells are large.

    Raises:
        DataError: the table is damaged, or a few bytes unpack to very large cells.
    """
    try:
        with regular_path(path) as name, pq.ParquetFile(name, pre_buffer=False) as table:
            if (twice := repeated(table.schema_arrow.names)) is not None:
                raise DataError(
                    f"{path}: two columns are called '{twice}'. Give each column a name of its own"
                )
            cell = _largest_cell(table.metadata, path)
            rows_at_once = max(1, min(_MOST_ROWS, _MOST_BYTES // cell))
            for batch in table.iter_batches(rows_at_once, use_threads=False):
                yield from python_cells(pa.Table.from_batches([batch]), path).to_pylist()
    except (OSError, ValueError, OverflowError, MemoryError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a Parquet table ({first_line(error)})") from None


def _largest_cell(stored: pq.FileMetaData, path: Path) -> int:
    """An estimate of the bytes of the largest text or picture, from the sizes of the columns.

    A column whose equal cells are stored once may hold a single cell.
    """
    largest = 1
    for column in range(stored.num_columns):
        if stored.schema.column(column).physical_type != "BYTE_ARRAY":
            continue
        for group in map(stored.row_group, range(stored.num_row_groups)):
            chunk = group.column(column)
            packed, unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
            if unpacked > max(_UNPACKED, _RATIO * packed):
                raise DataError(
                    f"{path}: the column {chunk.path_in_schema} unpacks from {packed:,} to "
                    f"{unpacked:,} bytes, which no pictures or captions do. Write the table again"
                )
            once = chunk.has_dictionary_page and unpacked > _REPEATED * packed
            largest = max(largest, unpacked if once else unpacked // max(1, group.num_rows))
    return largest


@contextlib.contextmanager
def table_faults(path: Path, stage: str) -> Iterator[None]:
    """Turn faults while reading the table at `path`, which `stage` writes, into a `DataError`."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file. Run the stage '{stage}' first, or 'dvc repro'"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not a table ({first_line(error)}). Run the stage '{stage}' again"
        ) from None


def open_table(path: Path, columns: Sequence[str], stage: str) -> pq.ParquetFile:
    """The table at `path`, which the stage `stage` writes and which has at least `columns`.

    Raises:
        DataError: the file is missing or damaged, or lacks a column.
    """
    check_if_sealed(path, f"Run the stage '{stage}' again")
    with table_faults(path, stage), regular_path(path) as name:
        table = pq.ParquetFile(name, page_checksum_verification=True)
    missing = set(columns) - set(table.schema_arrow.names)
    if missing:
        raise DataError(
            f"{path}: no column {', '.join(sorted(missing))}. Run the stage '{stage}' again"
        )
    return table


def metadata_of(path: Path, key: bytes, stage: str) -> str | None:
    """The text under `key` in the metadata of the table that `stage` writes, or None."""
    text: bytes | None = (open_table(path, (), stage).schema_arrow.metadata or {}).get(key)
    return None if text is None else text.decode()


def read_table(
    path: Path,
    schema: pa.Schema,
    remedy: str = "Run the stage 'captions' again.",
    read: Callable[[Path], pa.Table] | None = None,
    optional: Collection[str] = (),
) -> pa.Table:
    """The columns of `schema`, in its types: whole numbers become ids too. Metadata is kept.

    Args:
        optional: columns of `schema` that the file may lack.
        remedy: a sentence that says how to make the table again, for error messages.
        read: reads a file that is not Parquet.

    Raises:
        DataError: the file is missing or unreadable, lacks a column, or has cells of another type
            or empty cells. Only a list may be empty.
    """
    check_if_sealed(path, remedy.removesuffix("."))
    try:
        if read is None:
            with regular_path(path) as name:
                stored = pq.read_schema(name).names if optional else []
                lacking = {column for column in optional if column not in stored}
                wanted = [column for column in schema.names if column not in lacking]
                table = pq.read_table(name, columns=wanted, page_checksum_verification=True)
        else:
            table = read(path)
        columns = {
            field.name: table[field.name].cast(field.type)
            for field in schema
            if field.name not in optional or field.name in table.column_names
        }
        for name, column in columns.items():
            if column.null_count and not pa.types.is_list(column.type):
                raise ValueError(f"{column.null_count:,} cells of the column {name} are empty")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. {remedy}") from None
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        fault = first_line(error).strip("'\"")
        names = ", ".join(schema.names)
        raise DataError(f"{path}: not a table of {names}: {fault}. {remedy}") from None
    return pa.table(columns).replace_schema_metadata(table.schema.metadata)
