"""A learned number that stays positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class PositiveScalar(nn.Module):
    """The number `exp(log)` with one parameter `log`; it starts at `value`. A call returns it."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(value)))

    def forward(self) -> Tensor:
        """`()`, > 0."""
        return self.log.exp()
