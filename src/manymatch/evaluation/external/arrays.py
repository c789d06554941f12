"""Arrays in files of other programs: NumPy, safetensors, HDF5. Nothing is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
import torch
from numpy.lib.format import MAGIC_PREFIX, read_array_header_1_0, read_array_header_2_0
from safetensors import SafetensorError, safe_open
from torch import Tensor

from manymatch.foreign.numpy_file import FAULTS, load_array
from manymatch.system.errors import DataError, first_line

KINDS = ".npy, .npz, .safetensors, .h5 or .hdf5"
_FAULTS = (*FAULTS, RuntimeError, SafetensorError, zipfile.BadZipFile, zlib.error)
"""What the libraries raise on damaged files."""


@dataclass(frozen=True)
class Array:
    """`read(rows, columns, ...)` gives that part; `where` names the array in messages.

    The part is float32, or float64 where the type of the file holds numbers that float32 would
    round. Whole numbers beyond 2^53 are rounded all the same.

    Memory holds only the parts that are read. An `.npz` is the exception: the first part that is
    read brings in the whole array.
    """

    where: str
    shape: tuple[int, ...]
    read: Callable[..., Tensor]


def open_array(text: str) -> Array:
    """The array of numbers in `FILE` or, if it has several, `FILE:KEY`.

    Raises:
        DataError: no such file or key, another kind of file, or no array of real numbers.
    """
    path, key = _path_and_key(text)
    if path.suffix not in _OPENERS:
        raise DataError(f"{path}: of unknown kind; expected {KINDS}")
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: expected a file, found a folder or a device")
    try:
        array = _OPENERS[path.suffix](path, key)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _FAULTS as error:
        raise _unreadable(path, error) from None
    return replace(array, read=_reading(path, array.read))


def _unreadable(path: Path, error: BaseException) -> DataError:
    return DataError(f"{path}: cannot be read as {path.suffix}: {first_line(error)}")


def _reading(path: Path, read: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`read`, whose faults are one line: damage may show only where a part is read."""

    def told(*part: Any) -> Tensor:
        try:
            return read(*part)
        except _FAULTS as error:
            raise _unreadable(path, error) from None

    return told


def file_of(text: str) -> Path:
    """The file in `FILE` or `FILE:KEY`."""
    return _path_and_key(text)[0]


def _path_and_key(text: str) -> tuple[Path, str | None]:
    if not Path(text).exists():
        name, colon, key = text.rpartition(":")
        if colon and Path(name).suffix in _OPENERS:
            return Path(name), key
    return Path(text), None


def _npy(path: Path, key: str | None) -> Array:
    if key is not None:
        raise DataError(f"{path}: holds one array, without a name")
    return _of_numpy(str(path), load_array(path, mapped=True))


def _npz(path: Path, key: str | None) -> Array:
    if not zipfile.is_zipfile(path):
        path.open("rb").close()  # that it is missing is another fault
        raise DataError(f"{path}: cannot be read as .npz: not an archive of arrays")
    with np.load(path, allow_pickle=False) as arrays:
        chosen = _chosen(path, key, dict.fromkeys(arrays.files))
        member = next(name for name in arrays.zip.namelist() if name.removesuffix(".npy") == chosen)
        with arrays.zip.open(member) as stream:
            shape, dtype = _header(stream, f"{path}:{chosen}")
    _check_kind(f"{path}:{chosen}", dtype)

    @cache
    def unpacked() -> np.ndarray:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[chosen]

    return Array(f"{path}:{chosen}", shape, lambda *part: _unrounded(unpacked()[part]))


def _header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and kind of a packed array, without unpacking it: it may be any size, and not fit."""
    if stream.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:
        raise DataError(f"{where}: not an array")
    read = read_array_header_1_0 if stream.read(2)[:1] == b"\x01" else read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def _of_numpy(where: str, array: np.ndarray) -> Array:
    _check_kind(where, array.dtype)
    return Array(where, array.shape, lambda *part: _unrounded(np.array(array[part])))


def _safetensors(path: Path, key: str | None) -> Array:
    file = safe_open(path, framework="pt")
    chosen = _chosen(path, key, dict.fromkeys(file.keys()))
    part = file.get_slice(chosen)
    kind = part.get_dtype()
    if not kind.startswith(("F", "BF", "I", "U")):
        raise DataError(f"{path}:{chosen}: {kind} are not real numbers")
    fits = kind == "F32" or not kind.endswith(("32", "64"))
    dtype = torch.float32 if fits else torch.float64
    return Array(f"{path}:{chosen}", tuple(part.get_shape()), lambda *at: part[at].to(dtype))


def _hdf5(path: Path, key: str | None) -> Array:
    file = h5py.File(path, "r")
    found: dict[str, h5py.Dataset] = {}
    file.visititems(lambda name, item: _note(found, name, item))
    chosen = _chosen(path, key, found)
    data = found[chosen]
    where = f"{path}:{chosen}"
    _check_kind(where, data.dtype)
    if data.shape is None:
        raise DataError(f"{where}: an empty dataset, without any array")
    return Array(where, data.shape, lambda *part: _unrounded(np.asarray(data[part])))


def _note(found: dict[str, h5py.Dataset], name: str, item: Any) -> None:
    if isinstance(item, h5py.Dataset):
        found[name] = item


_OPENERS: dict[str, Callable[[Path, str | None], Array]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
}


def _chosen(path: Path, key: str | None, names: Mapping[str, Any]) -> str:
    """The array that `key` names; without one the only array that there is."""
    if not names:
        raise DataError(f"{path}: holds no array")
    listed = ", ".join(sorted(names))
    if key is None and len(names) != 1:
        raise DataError(f"{path}: holds {listed}; name one as {path.name}:KEY")
    if key is not None and key not in names:
        raise DataError(f"{path}: no array '{key}'; it holds {listed}")
    return key or next(iter(names))


def _check_kind(where: str, dtype: np.dtype) -> None:
    if dtype.kind not in "fiu":
        raise DataError(f"{where}: {dtype} are not real numbers")


def _unrounded(part: np.ndarray) -> Tensor:
    """In the type that `Array` promises. Numbers too large become infinite, without NumPy's
    warning: a check refuses them."""
    fits = np.can_cast(part.dtype, np.float32, "safe")
    with np.errstate(over="ignore"):
        return torch.from_numpy(part.astype(np.float32 if fits else np.float64, copy=False))
