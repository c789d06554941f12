"""Maximum mean discrepancy between the set elements of images and of captions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from manymatch.batch.shared_rows import by_rows
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
    if not (len(x) and len(y)):
        return (x.sum() + y.sum()) * 0.0  # part of the graph
    # The loss is `p K p`, K the kernel of all elements, p = 1 / |X| in x and -1 / |Y| in y.
    elements = torch.cat([x, y])
    share = elements.new_full((len(elements),), 1 / len(x))
    share[len(x) :] = -1 / len(y)
    # Subtracting the mean leaves distances unchanged and reduces rounding errors.
    elements = elements - elements.detach().mean(0)
    lengths = elements.square().sum(1)

    def of_rows(rows: Tensor, of_row: Tensor) -> Tensor:
        distances = _squared_distances(rows, elements, of_row[:, None] + lengths)
        if squared:
            return (-gamma * distances).exp().mv(share)
        result: Tensor = _RootKernel.apply(distances, share, gamma)
        return result

    with torch.autocast(x.device.type, enabled=False):
        return by_rows(of_rows, elements, lengths).dot(share)


def _squared_distances(x: Tensor, y: Tensor, sizes: Tensor) -> Tensor:
    """`(N, M)` of `x (N, D)` and `y (M, D)` by one matrix product; rounding errors become 0.

    `sizes (N, M)` are the sums of the squared lengths.
    """
    distances = torch.addmm(sizes, x, y.mT, alpha=-2)
    noise = _ROUNDING * torch.finfo(x.dtype).eps * sizes.detach()
    return distances.masked_fill(distances <= noise, 0.0)


class _RootKernel(torch.autograd.Function):
    """`K p` of `K = exp(-gamma sqrt d)`, with derivative 0 at d = 0, in half of autograd's passes
    over the matrix."""

    @staticmethod
    def forward(ctx: Any, distances: Tensor, share: Tensor, gamma: float) -> Tensor:
        roots = distances.sqrt()
        kernel = (roots * -gamma).exp_()
        ctx.save_for_backward(roots, kernel, share)
        ctx.factor = -gamma / 2
        return kernel.mv(share)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        roots, kernel, share = ctx.saved_tensors
        slopes = (kernel / roots).mul_(torch.outer(gradient * ctx.factor, share))
        return slopes.masked_fill_(roots == 0, 0.0), None, None
