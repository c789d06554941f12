"""Distances between distributions: the maximum mean discrepancy."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.batch.shared_rows import share_rows
from manymatch.similarities.vectors import full_precision, keep_precision

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
    if not (len(x) and len(y)):
        return (x.sum() + y.sum()) * 0.0  # part of the graph
    # The loss is `p K p`, K the kernel of all elements, p = 1 / |X| in x and -1 / |Y| in y.
    elements = torch.cat([x, y])
    share = elements.new_full((len(elements),), 1 / len(x))
    share[len(x) :] = -1 / len(y)
    # Subtracting the mean leaves distances unchanged and reduces rounding errors.
    elements = elements - elements.detach().mean(0)
    lengths = elements.square().sum(1)

    def kernel_rows(rows: Tensor, row_lengths: Tensor) -> Tensor:
        sizes = row_lengths[:, None] + lengths
        distances = torch.addmm(sizes, rows, elements.mT, alpha=-2)
        equal = distances <= _ROUNDING * torch.finfo(sizes.dtype).eps * sizes.detach()
        if not squared:
            distances = distances.masked_fill(equal, 1.0).sqrt()  # no derivative at 0
        return (-gamma * distances.masked_fill(equal, 0.0)).exp().mv(share)

    with keep_precision(x):
        return share_rows(kernel_rows, elements, lengths).dot(share)
