"""A learned number that stays positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class PositiveScalar(nn.Module):
    """`exp` of its one parameter: calling it gives the number, which starts at `value`."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(value)))

    def forward(self) -> Tensor:
        """`()`, > 0."""
        return self.log.exp()
