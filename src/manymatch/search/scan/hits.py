"""The result of a search: rows of the gallery with their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hits:
    """The best items for one query, the highest score first; equal scores in the order of rows.

    Attributes:
        rows: `(k,)` int64, rows of the gallery; fewer than k if fewer items qualify.
        scores: `(k,)` float32.
        reranked: the number of items that were scored exactly.
        exact: whether no other item can be among the best k.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    reranked: int
    exact: bool
