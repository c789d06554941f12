"""Files that hold a vector for each of many names, in the forms in which people have them.

    .pkl, .pickle   HowTo100M's list of {"id", "2d", "3d"}; or a mapping
    .pth, .pt       a mapping, saved by torch
    .npz, .h5, .hdf5

A mapping is from names to vectors, or two of them, "2d" and "3d". Nothing in a file is executed,
and no more of it is taken into memory than it is long.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manymatch.features.importers.npy import MAX_ROW_BYTES, array_header
from manymatch.foreign.pickles import PickledArray, read_pickle
from manymatch.foreign.torch_file import load_tensors
from manymatch.system.errors import DataError

PARTS = ("2d", "3d")
"""Of frames and of movement, where they are apart."""
Streams = tuple[Mapping[str, Any], ...]
"""One mapping from names to what `vector` reads, or one for each of `PARTS`."""


@contextmanager
def open_vectors(path: Path) -> Iterator[Streams]:
    """The vectors of a file by name; a `DataError` if it is damaged or of another kind."""
    opened = _READERS.get(path.suffix.lower())
    if opened is None:
        raise DataError(f"{path}: not one of {', '.join(sorted(_READERS))}")
    with opened(path) as found:
        yield found


def is_vectors(path: Path) -> bool:
    """Whether the file's name is that of one of these forms."""
    return path.suffix.lower() in _READERS


def vector(value: Any, where: str) -> NDArray[np.float32]:
    """`(D,)`: a vector, or the maximum over the rows of several `(T, D)`.

    Raises:
        DataError: not finite numbers of such a shape, or too many.
    """
    found = _READS.get(type(value), _refused)(value, where)
    if found.ndim not in (1, 2) or 0 in found.shape or found.dtype.kind not in "fiu":
        raise DataError(f"{where}: {found.dtype} {found.shape}, not a vector or rows of them")
    pooled = (found if found.ndim == 1 else found.max(0)).astype(np.float32)
    if not np.isfinite(pooled).all():
        raise DataError(f"{where}: holds NaN or infinity")
    return pooled


@contextmanager
def _pickled(path: Path) -> Iterator[Streams]:
    yield _streams(read_pickle(path), path)


@contextmanager
def _saved(path: Path) -> Iterator[Streams]:
    yield _streams(load_tensors(path), path)


def _streams(value: Any, path: Path) -> Streams:
    if isinstance(value, list):
        value = _by_id(value, path)
    if not isinstance(value, Mapping) or not value:
        raise DataError(f"{path}: expected vectors by name")
    if not value.keys() ^ set(PARTS) and all(isinstance(part, Mapping) for part in value.values()):
        return tuple(value[name] for name in PARTS)
    return (value,)


def _by_id(entries: list[Any], path: Path) -> dict[str, dict[str, Any]]:
    """HowTo100M's list as a mapping of each part."""
    parts: dict[str, dict[str, Any]] = {name: {} for name in PARTS}
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or not {"id", *PARTS} <= entry.keys():
            raise DataError(f"{path}: clip {number}: without 'id', '2d' and '3d'")
        for name in PARTS:
            parts[name][str(entry["id"])] = entry[name]
    return parts


@contextmanager
def _zipped(path: Path) -> Iterator[Streams]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [_Member(archive, member) for member in archive.infolist()]
            yield _split({each.info.filename.removesuffix(".npy"): each for each in members})
    except (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: not a whole .npz file ({error})") from None


@contextmanager
def _hdf5(path: Path) -> Iterator[Streams]:
    try:
        with h5py.File(path, "r", locking=False) as file:
            whole = _Group(file)
            parts = [whole[name] for name in PARTS] if set(whole) == set(PARTS) else []
            apart = parts and all(isinstance(part, h5py.Group) for part in parts)
            yield tuple(map(_Group, parts)) if apart else (whole,)
    except (OSError, RuntimeError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: damaged or not an HDF5 file ({reason})") from None


def _split(members: dict[str, _Member]) -> Streams:
    """By the folder that names begin with, if they do so with the parts."""
    parts: tuple[dict[str, _Member], ...] = tuple({} for _ in PARTS)
    for name, member in members.items():
        part, slash, rest = name.partition("/")
        if not slash or part not in PARTS:
            return (members,)
        parts[PARTS.index(part)][rest] = member
    return parts


class _Group(Mapping[str, Any]):
    """The datasets of a group, those alone that are in the file itself."""

    def __init__(self, group: h5py.Group) -> None:
        self._group = group

    def __getitem__(self, name: str) -> Any:
        if not isinstance(self._group.get(name, getlink=True), h5py.HardLink):
            raise DataError(f"{self._group.file.filename}: '{name}' lies elsewhere")
        return self._group[name]

    def __contains__(self, name: object) -> bool:
        return name in self._group

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __len__(self) -> int:
        return len(self._group)


class _Member:
    """An array of an archive, not yet read."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.archive, self.info = archive, info


def _read_member(member: _Member, where: str) -> NDArray[Any]:
    _bounded(member.info.file_size, where)
    with member.archive.open(member.info) as stream:
        data = io.BytesIO(stream.read(MAX_ROW_BYTES))
    try:
        shape, dtype = array_header(data)
    except (ValueError, TypeError) as error:
        raise DataError(f"{where}: not an array of floats ({str(error).splitlines()[0]})") from None
    values = data.read()
    if len(values) != math.prod(shape) * dtype.itemsize:
        raise DataError(f"{where}: {len(values)} B for an array of shape {shape}")
    return np.frombuffer(values, dtype).reshape(shape)


def _read_dataset(dataset: h5py.Dataset, where: str) -> NDArray[Any]:
    if dataset.external or dataset.is_virtual:
        raise DataError(f"{where}: lies in another file")
    # A piece may be larger than the whole, and is unpacked whole.
    piece = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    _bounded(max(dataset.nbytes, piece), where)
    found: NDArray[Any] = dataset[()]
    return np.asarray(found)


def _read_tensor(tensor: Tensor, where: str) -> NDArray[Any]:
    _bounded(tensor.numel() * tensor.element_size(), where)
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_complex():
        raise DataError(f"{where}: not a plain tensor")
    found: NDArray[Any] = tensor.detach().float().numpy()
    return found


def _read_array(array: PickledArray, where: str) -> NDArray[Any]:
    return np.asarray(array)


def _refused(value: Any, where: str) -> NDArray[Any]:
    raise DataError(f"{where}: {type(value).__name__}, not an array of numbers")


def _bounded(size: int, where: str) -> None:
    if size > MAX_ROW_BYTES:
        raise DataError(f"{where}: {size:,} B, more than one clip can have")


_READERS = {
    ".pkl": _pickled,
    ".pickle": _pickled,
    ".pth": _saved,
    ".pt": _saved,
    ".npz": _zipped,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}
_READS: dict[type, Any] = {
    PickledArray: _read_array,
    Tensor: _read_tensor,
    _Member: _read_member,
    h5py.Dataset: _read_dataset,
}
