"""LanceDB, the engine of tables: connections, versions, errors of one line, columns of arrays."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from manymatch.search.index.manifest import REMEDY, TABLE
from manymatch.util.errors import DataError, first_line
from manymatch.util.files import storage_errors
from manymatch.util.packages import extra, package_folder

_PATIENCE = {
    "connect_timeout": "10s",
    "timeout": "60s",
    "client_max_retries": "3",
    "client_retry_timeout": "20",
}
"""How long an object store may take."""
_PLACE = re.compile(r", /\S+\.rs:\d+:\d+.*")
"""The end of the engine's errors: a line of its source."""
_ERRORS = (OSError, ValueError, RuntimeError, KeyError, pa.ArrowException)


class EngineError(DataError):
    """The engine cannot read or write a table: damage, a full disk or a network fault."""


@contextmanager
def engine_faults(place: str, remedy: str = REMEDY) -> Iterator[None]:
    """Errors of the engine in the block are an `EngineError` of one line, which ends with
    `remedy`."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, _ERRORS) and type(error).__name__ != "RustPanic":
            raise
        line = _PLACE.sub("", first_line(error))[:300]
        raise EngineError(
            f"{place}: the table cannot be used ({line}). Check the place. {remedy}"
        ) from None


def connected(place: str) -> Any:
    """The database at `place`, a folder or a URL.

    Raises:
        ConfigError: LanceDB is not installed.
        DataError: the place cannot be reached.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import; no warnings on the terminal
    package_folder("lancedb", extra("lance"), "make an index in files")
    import lancedb

    with engine_faults(place):
        return lancedb.connect(place, storage_options=_PATIENCE if "://" in place else None)


def has_table(place: str) -> bool:
    """Whether there is a table, whole or damaged; a `DataError` if the place cannot be reached."""
    if place.startswith("file://") and not Path(place.removeprefix("file://")).is_dir():
        return False  # the engine would make the folder
    database = connected(place)
    with engine_faults(place):
        return TABLE in database.list_tables(limit=10_000).tables


def current(place: str) -> Any:
    """The newest version of the table at `place`.

    Raises:
        DataError: there is no such table, or the table is damaged.
    """
    if not has_table(place):
        raise DataError(f"{place}: not an index, because there is no table '{TABLE}'. {REMEDY}")
    with engine_faults(place):
        return connected(place).open_table(TABLE)


@dataclass(frozen=True)
class Version:
    """A version of the table at `place`: as long as it is the newest, nothing has changed."""

    place: str
    number: int


@contextmanager
def spooled(batches: Iterator[pa.Table], schema: pa.Schema, place: str) -> Iterator[Any]:
    """The batches in a temporary file, from which the engine reads. Batches that are read from a
    table while the engine asks for them would wait for the engine for ever."""
    folder = Path.cwd() if "://" in place else Path(place).parent
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with storage_errors(folder), TemporaryFile(dir=folder) as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in batches:
                writer.write_table(batch.cast(schema))
        file.seek(0)
        yield pa.ipc.open_stream(file)


def lists(array: NDArray[Any], inner: bool = False) -> pa.Array:
    """A column of lists of one size, of an array `(n, D)`; with `inner` of lists of vectors, of an
    array `(n, K, D)`, which the engine calls a multi-vector."""
    flat = pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[-1])
    if not inner:
        return flat
    ends = np.arange(0, len(flat) + 1, array.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), flat)


def array_of(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """`(n, ...)`: a column of lists, which all have one size."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    shape = [len(column)]
    while pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
        inner = column.flatten()
        if not len(column) or len(inner) % len(column):
            raise ValueError("lists of different sizes in one column")
        shape.append(len(inner) // len(column))
        column = inner
    flat: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return flat.reshape([shape[0], *shape[1:]])
