"""HDF5 files of other programs. An HDF5 file can name bytes of other files: these are refused."""

import math
from pathlib import Path
from typing import Any

import h5py

from manymatch.util.errors import DataError
from manymatch.util.regular_file import regular_path

FAULTS = (OSError, RuntimeError, KeyError, ValueError, TypeError)
"""What h5py raises for damaged files."""
_DEEPEST = 100
_MAX_CHUNK_BYTES = 2**30
"""A chunk is decompressed as a whole, even if only one number of it is read."""
_MAX_EXPANSION, _SMALL = 1100, 2**26
"""HDF5's compression reaches a factor of 1,032. Arrays up to 64 MiB may be of any factor."""


def open_hdf5(path: Path) -> h5py.File:
    """Open a file for reading.

    Raises:
        DataError: the path is not a regular file.
        OSError: the file is missing or damaged.
    """
    with regular_path(path) as name:
        return h5py.File(name, "r", locking=False)


def datasets(file: h5py.File, where: str) -> dict[str, h5py.Dataset]:
    """The datasets of a file by their paths. Links are not followed, and what has two names counts
    once. `visititems` of h5py takes hours for groups that are nested very deeply.

    Raises:
        DataError: there are more than `_DEEPEST` groups inside each other.
    """
    found: dict[str, h5py.Dataset] = {}
    waiting: list[tuple[str, int, h5py.Group]] = [("", 0, file)]
    seen: set[Any] = {file}
    while waiting:
        path, depth, group = waiting.pop()
        if depth > _DEEPEST:
            raise DataError(f"{where}: more than {_DEEPEST} groups inside each other")
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            if (item := group[name]) in seen:
                continue
            seen.add(item)
            if isinstance(item, h5py.Group):
                waiting.append((f"{path}{name}/", depth + 1, item))
            elif isinstance(item, h5py.Dataset):
                found[path + name] = item
    return found


def member(group: h5py.Group, name: str, where: str) -> Any:
    """The group or dataset `name` of `group`.

    Raises:
        DataError: the name is a link, or `check_dataset` refuses the dataset.
        KeyError: there is no such name.
    """
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise DataError(f"{where} is a link to elsewhere. Copy the data into the file")
    item = group[name]
    if isinstance(item, h5py.Dataset):
        check_dataset(item, where)
    return item


def check_dataset(dataset: h5py.Dataset, where: str) -> None:
    """Refuse a dataset by a `DataError` if its bytes are in other files, or far fewer than its
    shape needs."""
    if dataset.external or dataset.is_virtual:
        raise DataError(f"{where} is stored in another file. Copy the data into the file")
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    size = math.prod(dataset.shape or ()) * dataset.dtype.itemsize
    stored = dataset.id.get_storage_size()
    if chunk > _MAX_CHUNK_BYTES or size > max(_SMALL, _MAX_EXPANSION * stored):
        raise DataError(f"{where} claims {size:,} B, but the file has {stored:,} B of it")
