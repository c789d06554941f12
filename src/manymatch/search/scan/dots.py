"""Products of vectors by NumKong, where it is installed and right.

Products of int8 vectors are whole numbers. Products of float32 vectors are as precise as in
float64, without a copy of the vectors in float64.
"""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

numkong: Any
try:
    import numkong
except ImportError:  # the extra "search" is not installed
    numkong = None

_TILES = ("sapphireamx", "graniteamx")
"""Features of processors with which NumKong always computes 16 columns at once."""
_FEW_COLUMNS = 8
"""Number of columns up to which a scan is faster without tiles, found by measurement."""
_LOCK = threading.Lock()
Vectors = NDArray[np.int8] | NDArray[np.float32]


@cache
def available() -> bool:
    """Whether NumKong is installed and computes the products of NumPy on this processor."""
    if numkong is None:
        return False
    random = np.random.default_rng(0)
    for size, columns in ((16, 1), (256, 4), (1000, 5), (2048, 32)):
        rows, queries = (
            random.integers(-127, 128, (count, size), dtype=np.int8) for count in (67, columns)
        )
        with kernels(columns):
            products = Products(queries, len(rows))(rows)
        exact = rows.astype(np.float64) @ queries.T.astype(np.float64)
        thirds = [(vectors / np.float32(3)).astype(np.float32) for vectors in (rows, queries)]
        inexact = Products(thirds[1], len(rows))(thirds[0])
        exact_of_floats = thirds[0].astype(np.float64) @ thirds[1].T.astype(np.float64)
        right = np.array_equal(products, exact)
        if not right or not np.allclose(inexact, exact_of_floats, 0, 1e-8):
            warnings.warn(
                "NumKong computes wrong products on this processor. Searches score all "
                "items exactly instead.",
                stacklevel=2,
            )
            return False
    return True


@contextmanager
def kernels(columns: int) -> Iterator[None]:
    """In the block, `Products` of `columns` queries run with the fastest instructions for them.

    The choice holds for the whole process, so that only one thread at a time may be in a block.
    """
    with _LOCK:
        for feature in _tiles():
            if columns <= _FEW_COLUMNS:
                numkong.disable_capability(feature)
            else:
                numkong.enable_capability(feature)
        yield


@cache
def _tiles() -> list[str]:
    """The features that this processor has, before any is switched off."""
    return [feature for feature in _TILES if numkong.get_capabilities().get(feature)]


class Products:
    """Products of vectors with a few `queries (L, D)`, int8 or float32, in a buffer for at most
    `size` vectors."""

    def __init__(self, queries: Vectors, size: int) -> None:
        result = "int32" if queries.dtype == np.int8 else "float64"
        self._packed: Any = numkong.dots_pack(queries, str(queries.dtype))
        self._buffer: Any = numkong.zeros((size, len(queries)), dtype=result)
        self._products = torch.from_numpy(np.asarray(self._buffer))

    def __call__(self, rows: Vectors) -> Tensor:
        """`(n, L)` int32 or float64 for `rows (n, D)` of the queries' type; the next call
        overwrites the result."""
        numkong.dots_packed(rows, self._packed, out=self._buffer[: len(rows)])
        return self._products[: len(rows)]
