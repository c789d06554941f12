"""Which rows are real; mean, maximum and softmax over them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.similarities.pairs import full_precision


def real_rows(local: Tensor, mask: Tensor | None) -> Tensor:
    """The mask of `local (n, R, D)` as every pooling reads it: `(n, R)` bool, True where real.

    `mask (n, R)` is bool or holds 0 and 1 of any other type; None: all rows are real.
    """
    if mask is None:
        return torch.ones(local.shape[:2], dtype=torch.bool, device=local.device)
    return mask.bool()


class MeanPooling(nn.Module):
    """Mean over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`; `globals` are not looked at."""

    def forward(
        self, local: Tensor, mask: Tensor | None = None, globals: Tensor | None = None
    ) -> Tensor:
        mask = real_rows(local, mask)
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        # A weight of 0 would not keep NaN or infinity out.
        return weights[:, None] @ local.masked_fill(~mask[:, :, None], 0.0)


class MaxPooling(nn.Module):
    """Largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`;
    `globals` are not looked at."""

    def forward(
        self, local: Tensor, mask: Tensor | None = None, globals: Tensor | None = None
    ) -> Tensor:
        padding = ~real_rows(local, mask)
        return local.masked_fill(padding[:, :, None], -torch.inf).amax(1, keepdim=True)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of `scores (n, ..., K, R)` over the real of R by `mask (n, ..., R)`, 0 elsewhere.

    In float32 or better, also where `scores` are of half precision.
    """
    return full_precision(scores).masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)
