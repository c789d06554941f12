"""Chamfer similarity: every element is matched to its nearest in the other set."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.pairs import pair_cosines


def chamfer(images: Tensor, texts: Tensor) -> Tensor:
    """`1/2 mean_x max_y cos(x, y) + 1/2 mean_y max_x cos(x, y)`.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1]. `smooth_chamfer` tends to it as alpha grows.
    """
    cosines = pair_cosines(images, texts)
    return (cosines.amax(3).mean(2) + cosines.amax(2).mean(2)) / 2
