"""Arrays in `.npy` files of other programs, which are not unpickled; the faults of zip files."""

import math
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from manymatch.util.errors import DataError, first_line
from manymatch.util.regular_file import regular_path

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


MAX_IMAGE_BYTES = 64 * 2**20
"""Features of an image are far smaller. More bytes are a sign of a damaged header."""


def feature_array(path: Path, *axes: str) -> NDArray[Any]:
    """The floats in a `.npy` file of features, mapped from the disk, with the `axes`, such as
    "images", "regions", "width".

    Raises:
        DataError: the file is missing, cut off or not such an array, or an image has more than
            `MAX_IMAGE_BYTES`.
    """
    array = load_array(path, mapped=True)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise DataError(f"{path}: {array.dtype}; save the array with .astype('float32')")
    images = len(array) if axes[0] == "images" else 1
    if array.ndim != len(axes) or not array.size or array.nbytes > images * MAX_IMAGE_BYTES:
        raise DataError(f"{path}: shape {array.shape}, not ({', '.join(axes)})")
    return array
