"""Embedded items in the files of a folder: a table of the items, and one array for each part.

The index itself, and the finished parts of an unfinished index, are such folders.
"""

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from manymatch.search.index.manifest import CODES, NAME
from manymatch.search.index.sources import Entry
from manymatch.util.errors import DataError, StorageError, repeated
from manymatch.util.files import beside, remove, replacing, storage_errors, sync, write_json
from manymatch.util.json_file import read_object
from manymatch.util.numpy_file import load_array
from manymatch.util.parquet_file import check_cells, open_table, table_faults, table_writer
from manymatch.util.progress import say
from manymatch.util.regular_file import HIDDEN
from manymatch.util.seal import NAME as SEAL

if TYPE_CHECKING:
    from manymatch.methods.shared.embeddings import Embeddings
    from manymatch.search.index.manifest import Manifest

ITEMS = "items.parquet"
_SCHEMA = pa.schema(
    {
        "row": pa.int64(),
        "id": pa.string(),
        "path": pa.string(),
        "size": pa.int64(),
        "mtime_ns": pa.int64(),
        "sha256": pa.string(),
    }
)
OWN = _SCHEMA.names
"""The columns of every table of items; further ones are facts of the user or of the source."""
ROWS_AT_ONCE = 1024
_STAGE = "index"
_AGAIN = f"Run the stage '{_STAGE}' again"
_ARRAYS: dict[str, tuple[type[np.generic], str]] = {
    "vectors": (np.float32, "nKD"),
    "log_variance": (np.float32, "nD"),
    "candidate": (np.float32, "nD"),
    "mask": (np.bool_, "nK"),
}
"""The type and the dimensions of each array. Those of one letter have one size, at least 1."""
FILES = NAME, CODES, SEAL, ITEMS, *(f"{name}.npy" for name in _ARRAYS)
"""What the folder of an index holds."""


@dataclass(frozen=True)
class Stored:
    """The n items in `folder`: their table, and the arrays `(n, ...)`, mapped from the disk."""

    folder: Path
    items: pa.Table
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def open(cls, folder: Path) -> "Stored":
        """The items in `folder`.

        Raises:
            DataError: a file is missing or damaged, or does not fit the others.
        """
        items = read_items(folder)
        arrays = {file.stem: load_array(file, mapped=True) for file in sorted(folder.glob("*.npy"))}
        check_arrays(arrays, len(items), lambda name: f"{folder / name}.npy")
        return cls(folder, items, arrays)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def entries(self) -> list[Entry]:
        """The items in the order of the rows, without facts."""
        columns = (self.items[name].to_pylist() for name in ("path", "size", "mtime_ns", "sha256"))
        return [Entry(*values) for values in zip(*columns, strict=True)]

    def check(self, manifest: "Manifest") -> None:
        """Refuse items that are not those of the manifest: a `DataError` for another number of
        items, or for captions without a column `text` of texts."""
        if manifest.items != len(self):
            counts = f"{len(self):,} items instead of {manifest.items:,}"
            raise DataError(f"{self.folder / ITEMS}: {counts}. {_AGAIN}")
        if manifest.side == "images":
            return
        column = self.items["text"] if "text" in self.items.column_names else None
        if column is None or column.type != pa.string() or column.null_count:
            raise DataError(
                f"{self.folder / ITEMS}: expected a column 'text' of string without empty cells. "
                f"{_AGAIN}"
            )

    def embeddings(self) -> "Embeddings":
        """All embeddings; only the rows that are read are in memory."""
        return embeddings_of(self.arrays)

    def taken(self, rows: NDArray[np.int64]) -> "Embeddings":
        """The embeddings of the items with these row numbers, in this order."""
        return embeddings_of({name: array[rows] for name, array in self.arrays.items()})

    def blocks(self) -> "Iterator[Embeddings]":
        """The embeddings, some rows at once."""
        whole = self.embeddings()
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield whole.rows(slice(start, min(start + ROWS_AT_ONCE, len(self))))


def embeddings_of(arrays: dict[str, NDArray[Any]]) -> "Embeddings":
    """Embeddings that share the memory of the arrays of their parts."""
    import torch

    from manymatch.methods.shared.embeddings import Embeddings

    with warnings.catch_warnings(action="ignore"):  # of read-only arrays; nothing writes
        return Embeddings(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def read_items(folder: Path) -> pa.Table:
    """The table of the items in `folder`.

    Raises:
        DataError: the table is missing or damaged, or its columns are not those of an index.
    """
    path = folder / ITEMS
    with table_faults(path, _STAGE):
        items = open_table(path, OWN, _STAGE).read()
    check_cells(items, path)
    if fault := items_fault(items):
        raise DataError(f"{path}: {fault}. {_AGAIN}")
    return items


def items_fault(items: pa.Table) -> str | None:
    """What is wrong with the table of the items of an index."""
    if (twice := repeated(items.column_names)) is not None:
        return f"two columns are called '{twice}'"
    for field in _SCHEMA:
        column = items[field.name]
        if column.type != field.type or column.null_count:
            return f"expected a column '{field.name}' of {field.type} without empty cells"
    if not np.array_equal(items["row"], np.arange(len(items))):
        return "the column 'row' does not number the rows"
    for name in ("id", "path"):
        if len(items[name].unique()) < len(items):
            return f"a cell of the column '{name}' occurs twice"
    return None


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], items: int, place: Callable[[str], str]
) -> None:
    """Refuse arrays that are not embeddings of so many items. `place` says where an array is.

    Raises:
        DataError: an array is missing, unknown, or of another type or shape.
    """
    if unknown := sorted(arrays.keys() - _ARRAYS.keys()):
        raise DataError(f"{place(unknown[0])}: no file of an index. Remove the file")
    if "vectors" not in arrays:
        raise DataError(f"{place('vectors')}: no such file. {_AGAIN}")
    sizes = {"n": items}
    for name, (dtype, letters) in _ARRAYS.items():
        if (array := arrays.get(name)) is None:
            continue
        shape = array.shape if array.ndim == len(letters) else ()
        found = dict(zip(letters, shape, strict=False))
        expected = found | sizes
        if array.dtype != dtype or not found or found != {key: expected[key] for key in found}:
            known = ", ".join(str(sizes.get(letter, letter)) for letter in letters)
            raise DataError(
                f"{place(name)}: {array.dtype} {array.shape} instead of {np.dtype(dtype)} "
                f"({known}). {_AGAIN}"
            )
        if not array.flags.c_contiguous:
            raise DataError(f"{place(name)}: columns first, but expected rows first. {_AGAIN}")
        sizes = expected
    if 0 in sizes.values():
        raise DataError(f"{place('vectors')}: an index without items or numbers. {_AGAIN}")


def refuse_others(folder: Path, names: Collection[str]) -> None:
    """Refuse to replace a folder that holds something else than files of these `names`.

    Raises:
        StorageError: there is another file or folder, which would be lost. Hidden ones do not
            count: a file manager may have made them.
    """
    held = (path.name for path in folder.iterdir() if not path.name.startswith(HIDDEN))
    if others := sorted({*held} - {*names}):
        raise StorageError(
            f"{folder}: holds '{others[0]}', which would be lost. Move it away, or choose another "
            "folder"
        )


Row = tuple[Stored, int]
"""Where the embeddings of an item are."""


def table_of(entries: Sequence[Entry]) -> pa.Table:
    """The table of the entries, with their facts as further columns."""
    names = [name for name in OWN if name != "row"]
    columns = {name: [getattr(entry, name) for entry in entries] for name in names}
    table = pa.table({"row": list(range(len(entries)))} | columns, _SCHEMA)
    for name in dict.fromkeys(name for entry in entries for name in entry.facts):
        table = table.append_column(name, [[entry.facts.get(name) for entry in entries]])
    return table


def write_items(folder: Path, items: pa.Table) -> None:
    """Write the table of the items."""
    with table_writer(folder / ITEMS, items.schema) as writer:
        writer.write_table(items)
    sync(folder / ITEMS)


def gather(folder: Path, rows: Sequence[Row]) -> None:
    """Write the arrays of the given rows, in this order, in bounded memory."""
    places: dict[int, list[tuple[int, int]]] = {}
    for target_row, (stored, row) in enumerate(rows):
        places.setdefault(id(stored), []).append((target_row, row))
    sources = {id(stored): stored for stored, _ in rows}
    for name, first in rows[0][0].arrays.items():
        shape, file = (len(rows), *first.shape[1:]), folder / f"{name}.npy"
        target = open_memmap(file, "w+", first.dtype, shape)
        with file.open("rb+") as stream:  # writing to a map would end the process on a full disk
            os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)
        for key, stored in sources.items():
            pairs = np.array(places[key])
            for start in range(0, len(pairs), ROWS_AT_ONCE):
                to, of = pairs[start : start + ROWS_AT_ONCE].T
                target[to] = stored.arrays[name][of]
        target.flush()


class UnfinishedParts:
    """The parts of the index `target`, in a folder beside the index.

    Args:
        identity: what decides the embeddings (`manifest.model_identity`). Parts of another model
            are removed.
    """

    def __init__(self, target: Path, identity: dict[str, str]) -> None:
        self._folder = beside(target, ".parts.partial")
        self._identity = identity
        self._count = 0

    def finished(self) -> list[Stored]:
        """The parts that earlier runs have finished."""
        fits, parts = False, list[Stored]()
        with storage_errors(self._folder):
            model = self._folder / "model.json"
            with suppress(DataError):
                fits = model.is_file() and read_object(model) == self._identity
            if not fits:
                self.remove()
                write_json(model, self._identity)
            folders = [path for path in sorted(self._folder.iterdir()) if path.name.isdigit()]
        self._count = 1 + max((int(path.name) for path in folders), default=-1)
        for folder in folders:
            try:
                parts.append(Stored.open(folder))
            except DataError as error:
                say(f"{error}: these items are embedded anew")
        if parts:
            say(f"{self._folder}: {sum(map(len, parts)):,} items are finished from an earlier run")
        return parts

    def add(self, entries: list[Entry], embeddings: "Embeddings") -> Stored:
        """Write the next part."""
        folder = self._folder / f"{self._count:06d}"
        with replacing(folder) as partial:
            partial.mkdir()
            for name, part in embeddings.scored_parts().items():
                np.save(partial / f"{name}.npy", part.numpy())
                sync(partial / f"{name}.npy")
            write_items(partial, table_of(entries))
        self._count += 1
        return Stored.open(folder)

    def remove(self) -> None:
        """Remove all parts, because the index holds their rows, or because there are no rows."""
        with storage_errors(self._folder):
            remove(self._folder)
