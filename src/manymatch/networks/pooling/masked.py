"""Mean, maximum and softmax over the real rows of padded tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows, Padding
from manymatch.similarities.vectors import full_precision

Mask = Tensor | Padding | None
"""The real rows of `(n, R, ...)`: `(n, R)` of bool, or of 0 and 1 in any other type; None: all."""


def real_rows(local: Tensor, mask: Mask) -> Tensor:
    """The mask `(n, R)` of `local (n, R, D)` as bool, True for real rows."""
    if mask is None:
        return torch.ones(local.shape[:2], dtype=torch.bool, device=local.device)
    if isinstance(mask, Padding):
        return mask.mask
    return mask.bool()


def zeroed(local: Tensor, mask: Mask) -> Tensor:
    """`local (n, R, D)` with zeros where padded."""
    if mask is None or (isinstance(mask, PaddedRows) and mask.all_real):
        return local
    return local.masked_fill(~real_rows(local, mask)[:, :, None], 0.0)


class MeanPooling(nn.Module):
    """The mean of the real rows: `(n, R, D), (n, R) -> (n, 1, D)`; `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        # NaN or infinity times a weight of 0 would still be NaN.
        local, mask = zeroed(local, mask), real_rows(local, mask)
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        with torch.autocast(local.device.type, enabled=False):
            return weights[:, None] @ local


class MaxPooling(nn.Module):
    """The largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`;
    `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        padding = ~real_rows(local, mask)
        return local.masked_fill(padding[:, :, None], -torch.inf).amax(1, keepdim=True)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of `scores (n, ..., K, R)` over the real inputs by `mask (n, ..., R)`, 0 elsewhere.

    The result is in float32 or better, even if `scores` have half precision.
    """
    return full_precision(scores).masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)
