"""Mean, maximum and softmax over what is real."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.similarities.pairs import full_precision


class MeanPooling(nn.Module):
    """Mean over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`."""

    def forward(self, local: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        return weights[:, None] @ local


class MaxPooling(nn.Module):
    """Largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`."""

    def forward(self, local: Tensor, mask: Tensor) -> Tensor:
        return local.masked_fill(~mask[:, :, None], -torch.inf).amax(1, keepdim=True)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of `scores (n, ..., K, R)` over the real of R by `mask (n, ..., R)`, 0 elsewhere.

    In float32 or better, also where `scores` are of half precision.
    """
    return full_precision(scores).masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)
