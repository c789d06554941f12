"""Arrays in `.npy` files, a row at a time from its place: no code, no more memory than the row.

A memory map would do the same, but its pages count as the process's memory, up to all of it.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from manymatch.system.errors import DataError

MAX_ROW_BYTES = 64 * 2**20
"""An image's features are far smaller; more is taken for a damaged header."""
_DOUBLE = 8
"""Bytes of the longest floats that are read; longer ones differ from machine to machine."""
_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}


class NpyRows:
    """The rows of an array (n, ...) of floats in a `.npy` file.

    Raises:
        DataError: not such a file, cut off, or with rows beyond `MAX_ROW_BYTES`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("rb", buffering=0)
            self.shape, self.dtype = array_header(self._file)
        except FileNotFoundError:
            raise DataError(f"{path}: no such file") from None
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: not a .npy file of floats ({reason})") from None
        self._start = self._file.tell()
        self._check_size()
        os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, row: int, first: int | None = None) -> NDArray[Any]:
        """Row `row` (R, F), or its `first` entries alone."""
        shape = self.shape[1:] if first is None else (first, *self.shape[2:])
        return self._read(self._start + row * self._row_bytes, shape)

    def read_all(self) -> NDArray[Any]:
        """The whole array; it may take no more than `MAX_ROW_BYTES`."""
        if len(self) * self._row_bytes > MAX_ROW_BYTES:
            raise DataError(f"{self.path}: an array of shape {self.shape}, not of one image")
        return self._read(self._start, self.shape)

    def _read(self, at: int, shape: tuple[int, ...]) -> NDArray[Any]:
        out = np.empty(shape, self.dtype)
        view = out.reshape(-1).view(np.uint8).data
        while view:
            count = os.preadv(self._file.fileno(), [view], at)
            if count == 0:
                raise DataError(f"{self.path}: cut off while it was read")
            view, at = view[count:], at + count
        return out

    def close(self) -> None:
        self._file.close()

    @property
    def _row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def _check_size(self) -> None:
        if len(self.shape) < 2 or 0 in self.shape or self._row_bytes > MAX_ROW_BYTES:
            raise DataError(f"{self.path}: an array of shape {self.shape}, not of features")
        size, wanted = self.path.stat().st_size, self._start + len(self) * self._row_bytes
        if size < wanted:
            rows = max(0, size - self._start) // self._row_bytes
            raise DataError(
                f"{self.path}: row {rows}: cut off ({size} B where its header says {wanted} B)"
            )


def array_header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the floats in a `.npy` file; `ValueError` or `TypeError` if it is none."""
    version = npy_format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version}")
    shape, fortran_order, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which can run code")
    if dtype.kind != "f" or dtype.itemsize > _DOUBLE or fortran_order:
        raise ValueError(f"{dtype}, {'columns' if fortran_order else 'rows'} first")
    if any(size < 0 for size in shape):
        raise ValueError(f"shape {shape}")
    return shape, dtype
