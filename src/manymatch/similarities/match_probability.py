"""Match probability: the mean probability over all pairs of elements that they match."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.blocks import scored


def match_probability(
    images: Tensor, texts: Tensor, scale: Tensor | float, shift: Tensor | float
) -> Tensor:
    """`mean_{x, y} sigmoid(scale cos(x, y) + shift)`.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        scale, shift: scalars, usually learned; scale > 0.

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
