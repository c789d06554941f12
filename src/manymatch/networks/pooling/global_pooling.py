"""The poolings to one vector that a preset may name: mean, maximum and GPO."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from manymatch.networks.pooling.gpo import GPO
from manymatch.networks.pooling.masked import Mask, real_rows, zeroed


class MeanPooling(nn.Module):
    """The mean of the real rows: `(n, R, D), (n, R) -> (n, 1, D)`; `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, 1, D)`; `globals` are ignored."""
        # NaN or infinity times a weight of 0 would still be NaN.
        local, mask = zeroed(local, mask), real_rows(local, mask)
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        with torch.autocast(local.device.type, enabled=False):
            return weights[:, None] @ local


class MaxPooling(nn.Module):
    """The largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`;
    `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, 1, D)`; `globals` are ignored."""
        padding = ~real_rows(local, mask)
        return local.masked_fill(padding[:, :, None], -torch.inf).amax(1, keepdim=True)


PoolingName = Literal["mean", "max", "gpo"]
_POOLINGS: dict[PoolingName, type[nn.Module]] = {"mean": MeanPooling, "max": MaxPooling, "gpo": GPO}


def pooling(name: PoolingName) -> nn.Module:
    """A fresh module `(local (n, R, D), mask (n, R) or None) -> (n, 1, D)`."""
    return _POOLINGS[name]()
