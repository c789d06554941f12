"""Similarities of sets by the cosines of their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce

import torch
from torch import Tensor

from manymatch.similarities.blocks import blockwise, needs_gradient, scored
from manymatch.similarities.vectors import full_precision, pair_cosines


def mil(images: Tensor, texts: Tensor) -> Tensor:
    """`max_{x, y} cos(x, y)` over the elements x of an image and y of a text.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1].

    References:
        Song and Soleymani, Polysemous Visual-Semantic Embedding (PVSE), CVPR 2019, eq. 4.
    """
    return scored(images, texts, lambda cosines: cosines.amax((0, 1)))


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
    return scored(
        images, texts, lambda cosines: (cosines.amax(1).mean(0) + cosines.amax(0).mean(0)) / 2
    )


def smooth_chamfer(images: Tensor, texts: Tensor, alpha: float | Tensor = 16.0) -> Tensor:
    """`1/(2 alpha K) sum_x LSE_y(alpha cos) + 1/(2 alpha L) sum_y LSE_x(alpha cos)`.

    Args:
        images: `(n, K, D)`, L2-normalised. For vectors of other lengths, `cos` is the product.
        texts: `(m, L, D)`, L2-normalised.
        alpha: > 0, sharpness of the soft maximum; a number or a learned scalar.

    Returns:
        `(n, m)`, exact for negative cosines too. With K = L = 1 it is the cosine; otherwise it
        exceeds `chamfer` by at most `(log K + log L) / (2 alpha)`.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings
        (DivE), CVPR 2023, eq. 6.
    """
    learned = (alpha,) if isinstance(alpha, Tensor) else ()
    if needs_gradient(images, texts, *learned):
        return logsumexp_scores(alpha, alpha * pair_cosines(images, texts))
    return blocked_smooth_chamfer(images, texts, float(alpha))


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

    The cost is little more than that of the matrix product. The cosines are made in blocks that
    stay in the processor's cache. One exponential serves both directions. A sum of logarithms is
    the logarithm of a product, so that a pair costs a few logarithms instead of K + L.

    The result is exact up to rounding for vectors of any length and every alpha. Long vectors or a
    large alpha can make exponentials leave the range of the type; `logsumexp_scores` then computes
    all scores.
    """
    size, dtype = max(images.shape[1], texts.shape[1]), full_precision(images).dtype
    if factors_per_log(alpha, size, dtype) >= 1:
        scores = blockwise(images, texts, partial(_product_scores, alpha), scale=alpha)
        if scores.sum().isfinite():
            return scores

    def plane_scores(scaled: Tensor) -> Tensor:
        return logsumexp_scores(alpha, scaled.permute(2, 3, 0, 1))

    return blockwise(images, texts, plane_scores, scale=alpha)


def logsumexp_scores(alpha: float | Tensor, scaled: Tensor) -> Tensor:
    """The scores `(n, m)` from `scaled (n, m, K, L)`, `alpha` times the cosines, of any size."""
    text_terms, image_terms = scaled.logsumexp(3).mean(2), scaled.logsumexp(2).mean(2)
    return (text_terms + image_terms) / (2 * alpha)


def _product_scores(alpha: float, scaled: Tensor) -> Tensor:
    """The scores `(n, m)` from `scaled (K, L, n, m)`: faster than `logsumexp_scores`.

    The score of a pair whose exponentials leave the range is not finite.
    """
    n_image, n_text = scaled.shape[:2]
    exponentials = scaled.exp_()
    factors = factors_per_log(alpha, max(n_image, n_text), scaled.dtype)
    text_terms = _sum_of_logs(_safe_planes(exponentials.sum(1), alpha), factors)
    image_terms = _sum_of_logs(_safe_planes(exponentials.sum(0), alpha), factors)
    return text_terms.div_(2 * alpha * n_image).add_(image_terms, alpha=1 / (2 * alpha * n_text))


def _safe_planes(sums: Tensor, alpha: float) -> Sequence[Tensor]:
    """The planes of `sums`, with 0 for values so small that products could lose digits.

    A product with 0 is 0 or NaN. The logarithm of such a product is not finite. The logarithm of an
    overflow is not finite either.
    """
    return torch.threshold_(sums, math.exp(-alpha * _LONGEST), 0.0).unbind(0)


def _sum_of_logs(values: Sequence[Tensor], factors: int) -> Tensor:
    groups = (values[start : start + factors] for start in range(0, len(values), factors))
    return reduce(torch.add, (reduce(torch.mul, group).log() for group in groups))


def match_probability(
    images: Tensor, texts: Tensor, scale: Tensor | float, shift: Tensor | float
) -> Tensor:
    """`mean_{x, y} sigmoid(scale cos(x, y) + shift)`.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        scale: > 0, a number or a learned scalar.
        shift: a number or a learned scalar.

    Returns:
        `(n, m)` in (0, 1).

    References:
        The soft contrastive probability of PCME (Chun et al., CVPR 2021, eq. 1) with cosines
        instead of Euclidean distances, as in DivE's ablation.
    """

    def mean_probability(cosines: Tensor) -> Tensor:
        return torch.sigmoid(scale * cosines + shift).mean((0, 1))

    learned = (value for value in (scale, shift) if isinstance(value, Tensor))
    return scored(images, texts, mean_probability, *learned)
