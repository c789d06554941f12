"""Products of int8 vectors by NumKong, where it is installed and right."""

from __future__ import annotations

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
Int8 = NDArray[np.int8]


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
        if not np.array_equal(products, rows.astype(np.int32) @ queries.T.astype(np.int32)):
            warnings.warn(
                "NumKong computes wrong products on this processor. Searches read the float32 "
                "embeddings instead.",
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
    """Products of vectors with a few queries, in a buffer for at most `size` vectors.

    Args:
        queries: `(L, D)`.
    """

    def __init__(self, queries: Int8, size: int) -> None:
        self._packed: Any = numkong.dots_pack(queries, "int8")
        self._buffer: Any = numkong.zeros((size, len(queries)), dtype="int32")
        self._products = torch.from_numpy(np.asarray(self._buffer))

    def __call__(self, rows: Int8) -> Tensor:
        """`(n, L)` int32 for `rows (n, D)`; the next call overwrites the result."""
        numkong.dots_packed(rows, self._packed, out=self._buffer[: len(rows)])
        return self._products[: len(rows)]
