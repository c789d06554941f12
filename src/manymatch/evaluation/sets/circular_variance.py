"""How far the elements of a set are apart: the circular variance."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.blocks import runs

_SETS_AT_ONCE = 4096
_LEAST = 1e-12
"""A lower bound, because the log of the variance of equal elements would be infinite."""


def circular_variance(vectors: Tensor, *, squared: bool = False) -> Tensor:
    """`1 - ||mean of the set's unit vectors||` of each set, in double precision.

    0 if all elements have the same direction; 1 if they cancel out.

    Args:
        vectors: `(n, K, D)`, of any length but zero.
        squared: use the squared norm, as MaxMatch does.

    Returns:
        `(n,)` float64 in 0..1.

    References:
        Kim et al., DivE, CVPR 2023, section 4.6. Squared: Alomari et al., MaxMatch, ACL 2025,
        table 4.
    """
    norms = normalize(vectors.double(), dim=2).mean(1).norm(dim=1)
    return (1 - (norms.square() if squared else norms)).clamp_min(0.0)


def log_circular_variance(vectors: Tensor, *, squared: bool = False) -> float:
    """The natural logarithm of the mean `circular_variance` of n sets `(n, K, D)`."""
    parts = [
        circular_variance(vectors[run], squared=squared)
        for run in runs(len(vectors), _SETS_AT_ONCE)
    ]
    return math.log(max(torch.cat(parts).mean().item(), _LEAST))
