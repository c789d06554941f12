"""The real rows of padded tensors, and the softmax over them."""

from __future__ import annotations

import torch
from torch import Tensor

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


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of `scores (n, ..., K, R)` over the real inputs by `mask (n, ..., R)`, 0 elsewhere.

    The result is in float32 or better, even if `scores` have half precision.
    """
    return full_precision(scores).masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)
