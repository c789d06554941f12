"""Reading pickles from elsewhere as data, without running code.

A pickle is a small program that may call any function. Here a pickle may only build dictionaries,
lists, strings, numbers and NumPy arrays of numbers or text. Our own functions replace the few
functions that such pickles call, and check their arguments before they use memory.
"""

import math
import os
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from manymatch.util.errors import DataError, first_line
from manymatch.util.numpy_file import is_text
from manymatch.util.regular_file import open_regular

MAX_BYTES = 4 * 2**30
"""Limit of the size, because a pickle is read into memory as a whole."""
_KINDS = re.compile(r"[<>|=]?[fiubSU]\d+")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")


def read_pickle(path: Path) -> Any:
    """The content of the pickle at `path`. Arrays are `PickledArray`.

    Raises:
        DataError: the file is missing, not a pickle, cut off, larger than `MAX_BYTES`, or contains
            something other than plain data.
    """
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_BYTES:
                raise DataError(
                    f"{path}: {size:,} B. Pickles are read as a whole, so at most {MAX_BYTES:,} B"
                )
            _check_memo(stream)
            stream.seek(0)
            return _Unpickler(stream, encoding="latin1").load()
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as error:  # Damaged pickles raise almost any exception.
        raise DataError(f"{path}: not a pickle of plain data ({first_line(error)})") from None


class PickledArray:
    """An array in a pickle. `numpy.asarray` converts it."""

    def __init__(self) -> None:
        self._values: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, by_columns, data = state
        self._values = _array(data, kind, shape, "F" if by_columns else "C")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._values is None:
            raise ValueError("an array without values")
        return np.array(self._values, dtype)


class _Kind:
    """A `numpy.dtype` that is being unpickled. For text, its code has the number of characters."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _KINDS.fullmatch(code):
            raise pickle.UnpicklingError(f"an array of '{code}', not of numbers or text")
        self.dtype = np.dtype(code.lstrip("<>|="))

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError("an array of an unknown byte order")
        self.dtype = self.dtype.newbyteorder(state[1])


def _array(data: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    """An array from its bytes, after a check that their number fits the shape."""
    raw = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(kind, _Kind) or not isinstance(raw, bytes | bytearray):
        raise pickle.UnpicklingError("an array of objects")
    dtype, sizes = kind.dtype, tuple(map(int, shape))
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != len(raw):
        raise pickle.UnpicklingError(f"an array of shape {sizes} in {len(raw)} B")
    array = np.frombuffer(raw, dtype).reshape(sizes, order="F" if order == "F" else "C")
    if not is_text(array):
        raise pickle.UnpicklingError("an array of text with impossible characters")
    return array


def _frombuffer(data: Any, kind: Any, shape: Any, order: Any) -> PickledArray:
    array = PickledArray()
    array.__setstate__((1, shape, kind, order == "F", data))
    return array


_CALLS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _Kind,
    # Pickles of old protocols write bytes by these two calls.
    ("_codecs", "encode"): lambda text, _="latin1": text.encode("latin1"),
    ("__builtin__", "bytes"): lambda: b"",
    ("collections", "OrderedDict"): dict,
    **{
        (f"numpy.{core}.{name}", call): ours
        for core in ("core", "_core")
        for name, call, ours in (
            ("multiarray", "_reconstruct", lambda *_: PickledArray()),
            ("multiarray", "scalar", lambda kind, data: _array(data, kind, (), "C")[()].item()),
            ("numeric", "_frombuffer", _frombuffer),
        )
    },
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _CALLS:
            raise pickle.UnpicklingError(f"it would call {module}.{name}, which is not plain data")
        return _CALLS[module, name]


def _check_memo(stream: BinaryIO) -> None:
    """Check that no memo number is larger than the number of operations.

    The unpickler allocates a table as long as the largest number, so that ten bytes could fill the
    whole memory.
    """
    for count, (opcode, number, _) in enumerate(pickletools.genops(stream)):
        if opcode.name in _PUTS and int(str(number)) > count:
            raise ValueError("a memo number is too large")
