"""Pickles from elsewhere, read as data: whatever is in them, no code of theirs runs.

A pickle is a small program that may call anything. Here it may build dictionaries, lists, strings,
numbers and NumPy arrays of numbers or text, and nothing else: the few functions that such pickles
call are replaced by ours, which check what they are given before they take memory for it.
"""

from __future__ import annotations

import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from manymatch.system.errors import DataError

MAX_BYTES = 4 * 2**30
"""A pickle is read whole, and so takes as much memory as it is long."""
_KINDS = re.compile(r"[<>|=]?[fiubSU]\d+")
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")


def read_pickle(path: Path, most: int = MAX_BYTES) -> Any:
    """What the pickle at `path` holds; arrays as `PickledArray`.

    Raises:
        DataError: not a pickle, cut off, larger than `most` bytes, or of something that is not
            plain data.
    """
    try:
        size = path.stat().st_size
        if size > most:
            raise DataError(f"{path}: {size:,} B, and a pickle is read whole; at most {most:,} B")
        with path.open("rb") as stream:
            _check_memo(stream)
            stream.seek(0)
            return _Unpickler(stream, encoding="latin1").load()
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except Exception as error:  # Damaged pickles raise almost anything.
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{path}: not a pickle of plain data ({reason})") from None


class PickledArray:
    """An array of a pickle; `numpy.asarray` gives it as an array."""

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
    """A `numpy.dtype` in the making."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _KINDS.fullmatch(code):
            raise pickle.UnpicklingError(f"an array of '{code}', not of numbers or text")
        self._code, self._order = code.lstrip("<>|="), ""

    def __setstate__(self, state: Any) -> None:
        if state[1] not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError("an array of an unknown byte order")
        self._order = state[1]

    def dtype(self) -> np.dtype[Any]:
        # Text has its length in characters in the code.
        return np.dtype(f"{self._order}{self._code}")


def _array(data: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    """Numbers from their bytes, which must be as many as the shape says."""
    raw = data.encode("latin1") if isinstance(data, str) else data
    if not isinstance(kind, _Kind) or not isinstance(raw, bytes | bytearray):
        raise pickle.UnpicklingError("an array of objects")
    dtype, sizes = kind.dtype(), tuple(map(int, shape))
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != len(raw):
        raise pickle.UnpicklingError(f"an array of shape {sizes} in {len(raw)} B")
    return np.frombuffer(raw, dtype).reshape(sizes, order="F" if order == "F" else "C")


def _reconstruct(*_: Any) -> PickledArray:
    return PickledArray()


def _frombuffer(data: Any, kind: Any, shape: Any, order: Any) -> PickledArray:
    found = PickledArray()
    found.__setstate__((1, shape, kind, order == "F", data))
    return found


def _scalar(kind: Any, data: Any) -> Any:
    return _array(data, kind, (), "C")[()].item()


def _encode(text: str, _: str = "latin1") -> bytes:
    """How pickles of old protocols write bytes."""
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""


def _no_items() -> dict[Any, Any]:
    return {}


_CALLS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): PickledArray,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): _no_items,
    ("__builtin__", "bytes"): _no_bytes,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _frombuffer for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _CALLS:
            raise pickle.UnpicklingError(f"it would call {module}.{name}, which is no plain data")
        return _CALLS[module, name]


def _check_memo(stream: BinaryIO) -> None:
    """That things are remembered under numbers no greater than there are things.

    The unpickler allots a table as long as the greatest number: ten bytes could take all memory.
    """
    for count, (opcode, number, _) in enumerate(pickletools.genops(stream)):
        if opcode.name in _PUTS and int(str(number)) > count:
            raise ValueError("it numbers more things than it holds")
