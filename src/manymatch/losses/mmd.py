"""Maximum mean discrepancy between the set elements of images and of captions."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.pairs import full_precision

_ROUNDING = 16
"""Squared distances below this number of epsilons of the squared norms are rounding errors."""


def mmd(images: Tensor, texts: Tensor, gamma: float = 0.5, squared: bool = False) -> Tensor:
    """`mean k(x, x') - 2 mean k(x, y) + mean k(y, y')`, `k = exp(-gamma ||x - y||)`.

    x runs over all elements of all images, y over all elements of all texts; every element is also
    paired with itself. The loss is 0 if both have the same distribution, so that the two modalities
    share one space. The loss is also 0 if one of them is empty.

    Args:
        images: `(n, K, D)`, L2-normalised in DivE.
        texts: `(m, L, D)`.
        gamma: > 0.
        squared: use `||x - y||^2` in the kernel, the usual Gaussian. The released code of PVSE and
            DivE, which gave the published numbers, does not square the distance.

    References:
        Gretton et al., A Kernel Two-Sample Test, JMLR 2012, the biased estimate; DivE, L_MMD.
    """
    x, y = full_precision(images).flatten(0, 1), full_precision(texts).flatten(0, 1)
    # Subtracting the mean from both sets leaves distances unchanged and reduces rounding errors.
    centre = torch.cat([x, y]).detach().mean(0)
    x, y = x - centre, y - centre

    def kernel(distances: Tensor) -> Tensor:
        return (-gamma * (distances if squared else root(distances))).exp().mean()

    with torch.autocast(x.device.type, enabled=False):
        distances = squared_distances(x, y)
        if not distances.numel():
            return distances.sum()  # 0, and part of the graph
        across = kernel(distances)
        return kernel(_within(x)) - 2 * across + kernel(_within(y))


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """`(N, M)` of `x (N, D)` and `y (M, D)` by one matrix product; rounding errors become 0."""
    sizes = x.square().sum(1, keepdim=True) + y.square().sum(1)
    distances = torch.addmm(sizes, x, y.mT, alpha=-2)
    noise = _ROUNDING * torch.finfo(x.dtype).eps * sizes.detach()
    return distances.masked_fill(distances <= noise, 0.0)


def _within(x: Tensor) -> Tensor:
    return squared_distances(x, x)


def root(values: Tensor) -> Tensor:
    """Square root with derivative 0 at 0."""
    zero = values == 0
    return values.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)
