"""Arrays in `.npy` files of other programs, which are not unpickled; the faults of zip files."""

import math
import os
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from manymatch.util.errors import DataError, first_line
from manymatch.util.regular_file import open_regular, regular_path

_HEADERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
_MOST_BYTES, _MOST_DIMENSIONS = 2**50, 32
"""The most bytes and dimensions of an array. NumPy 1 refuses arrays with more dimensions."""
FAULTS = (OSError, ValueError, EOFError, SyntaxError, OverflowError, MemoryError)
"""What NumPy raises for damaged files, besides `ZIP_FAULTS`."""
ZIP_FAULTS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    # The standard library raises these for some damaged headers.
    ValueError,
    OverflowError,
    NotImplementedError,
)
"""What `zipfile` raises for damaged files, besides `OSError`."""


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array at the start of `stream`.

    Raises:
        ValueError: the stream is not an array in the format of NumPy.
    """
    version = npy_format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"version {version}")
    try:
        shape, columns_first, dtype = _HEADERS[version](stream)
    except Exception as error:  # the parser of Python raises almost anything
        raise ValueError(first_line(error)) from None
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0:
        raise ValueError("an impossible shape")
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise ValueError("an impossible shape")
    return shape, columns_first, dtype


def load_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """The array in a `.npy` file, in memory or `mapped` from the disk.

    Raises:
        DataError: the file is missing or not an array.
    """
    try:
        with regular_path(path) as name:
            array = np.load(name, mmap_mode="r" if mapped else None, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except DataError:
        raise
    except Exception as error:  # NumPy raises almost anything for damaged files
        raise DataError(f"{path}: not an array: {first_line(error)}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(f"{path}: an archive of arrays, not one array. Rename the file to .npz")
    if array.dtype.kind == "V" or not is_text(array):
        raise DataError(f"{path}: {array.dtype} are neither numbers nor text")
    return array


def names_in(array: NDArray[Any]) -> list[str]:
    """The entries of an array `(n,)` of numbers or text as text. Bytes are UTF-8."""
    return [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for value in array.tolist()
    ]


def is_text(array: NDArray[Any]) -> bool:
    """Whether all characters of an array of text exist. Arrays of other types pass."""
    if array.dtype.kind != "U" or not array.nbytes:
        return True
    codes = np.ascontiguousarray(array).view(array.dtype.str[0] + "u4")
    return bool(codes.max() <= sys.maxunicode)


MAX_ROW_BYTES = 64 * 2**20
"""Features of an image are far smaller. A larger row is a sign of a damaged header."""
_DOUBLE = 8
"""Bytes of the longest float type. Longer types differ between machines."""


class NpyRows:
    """The rows of an array (n, ...) of floats in a `.npy` file.

    Raises:
        DataError: the file is missing, is no such array, is cut off, or has rows of more than
            `MAX_ROW_BYTES`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_regular(path, buffering=0)
            self.shape, self.dtype = array_header(self._file)
        except FileNotFoundError:
            raise DataError(f"{path}: no such file") from None
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path}: not a .npy file of floats ({first_line(error)})") from None
        self._start = self._file.tell()
        self._row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        if len(self.shape) < 2 or 0 in self.shape or self._row_bytes > MAX_ROW_BYTES:
            raise DataError(f"{path}: an array of shape {self.shape} is not an array of features")
        size, expected = path.stat().st_size, self._start + len(self) * self._row_bytes
        if size < expected:
            row = max(0, size - self._start) // self._row_bytes
            raise DataError(
                f"{path}: row {row}: cut off ({size} B, but the header says {expected} B)"
            )
        os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, row: int, first: int | None = None) -> NDArray[Any]:
        """Return row `row` (R, F), or only its `first` entries."""
        shape = self.shape[1:] if first is None else (first, *self.shape[2:])
        return self._read(self._start + row * self._row_bytes, shape)

    def read_all(self) -> NDArray[Any]:
        """Return the whole array, which must not exceed `MAX_ROW_BYTES`."""
        if len(self) * self._row_bytes > MAX_ROW_BYTES:
            raise DataError(
                f"{self.path}: an array of shape {self.shape} is too large for one image"
            )
        return self._read(self._start, self.shape)

    def _read(self, offset: int, shape: tuple[int, ...]) -> NDArray[Any]:
        self._file.seek(offset)
        values = np.fromfile(self._file, self.dtype, math.prod(shape))
        if values.size != math.prod(shape):
            raise DataError(f"{self.path}: cut off while reading")
        return values.reshape(shape)

    def close(self) -> None:
        self._file.close()


def array_header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of the floats in a `.npy` file.

    Raises:
        ValueError, TypeError: the file is not an array of floats.
    """
    shape, columns_first, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("pickled objects, which can run code")
    if dtype.kind != "f" or dtype.itemsize > _DOUBLE:
        raise ValueError(f"{dtype}; save the array with .astype('float32')")
    if columns_first and len(shape) > 1:
        raise ValueError("columns first; save np.ascontiguousarray of the array")
    return shape, dtype
