"""Mean and maximum over what is real."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MeanPooling(nn.Module):
    """Mean over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`."""

    def forward(self, local: Tensor, mask: Tensor) -> Tensor:
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        return weights[:, None] @ local


class MaxPooling(nn.Module):
    """Largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`."""

    def forward(self, local: Tensor, mask: Tensor) -> Tensor:
        return local.masked_fill(~mask[:, :, None], -torch.inf).amax(1, keepdim=True)
