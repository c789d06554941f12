"""Smooth-Chamfer without gradient, at the price of little more than its matrix product.

The `(n, m, K, L)` cosines are made in blocks that stay in the processor's cache; one exponential
serves both directions; and because a sum of logarithms is the logarithm of a product, a pair
costs a few logarithms instead of K + L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce

import torch
from torch import Tensor

from manymatch.similarities.blocks import in_blocks

_LONGEST = 1.01
"""Norm products up to which `factors_per_log` holds (1, and some rounding of half precision)."""


def factors_per_log(alpha: float, size: int, dtype: torch.dtype) -> int:
    """How many sums of `size` terms `exp(alpha cos)` can be multiplied within `dtype`'s range.

    0 means that a single one could overflow or underflow.
    """
    finfo = torch.finfo(dtype)
    room = min(math.log(finfo.max), -math.log(finfo.tiny))
    return int(room / (alpha * _LONGEST + math.log(size)))


def blocked_smooth_chamfer(images: Tensor, texts: Tensor, alpha: float) -> Tensor:
    """`smooth_chamfer` of `images (n, K, D)` and `texts (m, L, D)`, without gradient.

    Needs `factors_per_log(alpha, max(K, L), dtype) >= 1`; exact to rounding for every cosine.
    """
    return in_blocks(images, texts, partial(_reduce, alpha), scale=alpha)


def _reduce(alpha: float, scaled: Tensor) -> Tensor:
    n_image, n_text = scaled.shape[:2]
    exponentials = scaled.exp_()
    factors = factors_per_log(alpha, max(n_image, n_text), scaled.dtype)
    to_texts = _sum_of_logs(exponentials.sum(1).unbind(0), factors)
    to_images = _sum_of_logs(exponentials.sum(0).unbind(0), factors)
    return to_texts.div_(2 * alpha * n_image).add_(to_images, alpha=1 / (2 * alpha * n_text))


def _sum_of_logs(values: Sequence[Tensor], factors: int) -> Tensor:
    groups = (values[start : start + factors] for start in range(0, len(values), factors))
    return reduce(torch.add, (reduce(torch.mul, group).log() for group in groups))
