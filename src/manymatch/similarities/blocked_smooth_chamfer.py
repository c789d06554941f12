"""Smooth-Chamfer without gradient, which costs little more than its matrix product.

The `(n, m, K, L)` cosines are made in blocks that stay in the processor's cache. One exponential
serves both directions. A sum of logarithms is the logarithm of a product, so that a pair costs a
few logarithms instead of K + L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce

import torch
from torch import Tensor

from manymatch.similarities.blocks import in_blocks
from manymatch.similarities.pairs import full_precision

_LONGEST = 1.01
"""Largest product of norms for which `factors_per_log` is valid: 1, and rounding of half
precision."""


def factors_per_log(alpha: float, size: int, dtype: torch.dtype) -> int:
    """The number of sums of `size` terms `exp(alpha cos)` whose product is within `dtype`'s range.

    0 means that one sum alone could overflow or underflow.
    """
    finfo = torch.finfo(dtype)
    room = min(math.log(finfo.max), -math.log(finfo.tiny))
    return int(room / (alpha * _LONGEST + math.log(size)))


def blocked_smooth_chamfer(images: Tensor, texts: Tensor, alpha: float) -> Tensor:
    """`smooth_chamfer` of `images (n, K, D)` and `texts (m, L, D)`, without gradient.

    The result is exact up to rounding for vectors of any length and every alpha. Long vectors or a
    large alpha can make exponentials leave the range of the type; `by_logsumexp` then does all.
    """
    size, dtype = max(images.shape[1], texts.shape[1]), full_precision(images).dtype
    if factors_per_log(alpha, size, dtype) >= 1:
        scores = in_blocks(images, texts, partial(_by_products, alpha), scale=alpha)
        if scores.sum().isfinite():
            return scores
    return in_blocks(
        images, texts, lambda scaled: by_logsumexp(alpha, scaled.permute(2, 3, 0, 1)), scale=alpha
    )


def by_logsumexp(alpha: float | Tensor, scaled: Tensor) -> Tensor:
    """The scores `(n, m)` from `scaled (n, m, K, L)`, `alpha` times the cosines, of any size."""
    to_texts, to_images = scaled.logsumexp(3).mean(2), scaled.logsumexp(2).mean(2)
    return (to_texts + to_images) / (2 * alpha)


def _by_products(alpha: float, scaled: Tensor) -> Tensor:
    """The scores `(n, m)` from `scaled (K, L, n, m)`: faster than `by_logsumexp`, and not finite
    for a pair whose exponentials leave the range."""
    n_image, n_text = scaled.shape[:2]
    exponentials = scaled.exp_()
    factors = factors_per_log(alpha, max(n_image, n_text), scaled.dtype)
    to_texts = _sum_of_logs(_in_range(exponentials.sum(1), alpha), factors)
    to_images = _sum_of_logs(_in_range(exponentials.sum(0), alpha), factors)
    return to_texts.div_(2 * alpha * n_image).add_(to_images, alpha=1 / (2 * alpha * n_text))


def _in_range(sums: Tensor, alpha: float) -> Sequence[Tensor]:
    """The planes of `sums`, with 0 for values so small that products could lose digits.

    A product with 0 is 0 or NaN, and its logarithm is not finite; nor is that of an overflow.
    """
    return torch.threshold_(sums, math.exp(-alpha * _LONGEST), 0.0).unbind(0)


def _sum_of_logs(values: Sequence[Tensor], factors: int) -> Tensor:
    groups = (values[start : start + factors] for start in range(0, len(values), factors))
    return reduce(torch.add, (reduce(torch.mul, group).log() for group in groups))
