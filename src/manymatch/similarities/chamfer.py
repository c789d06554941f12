"""Chamfer similarity: every element is matched to the nearest element of the other set."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.blocks import scored


def chamfer(images: Tensor, texts: Tensor) -> Tensor:
    """`1/2 mean_x max_y cos(x, y) + 1/2 mean_y max_x cos(x, y)`.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1].

    Relations:
        `smooth_chamfer` tends to this similarity as alpha grows; `mil` is the best pair alone.
    """
    return scored(images, texts, _both_ways)


def _both_ways(cosines: Tensor) -> Tensor:
    return (cosines.amax(1).mean(0) + cosines.amax(0).mean(0)) / 2
