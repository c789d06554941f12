"""Dropout that draws its mask faster on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_CHUNK = 2**15
"""Numbers that are drawn at once: they fit in a processor's cache."""


class Dropout(nn.Dropout):
    """`nn.Dropout`, whose mask takes half the time on a CPU.

    An element is kept where the next float64 number in 0..1 of torch's generator is below 1 - p.
    torch's kernel draws and compares one element at a time, with the same result.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """`inputs (...)`; in training each element is zero or `1 / (1 - p)` times as large."""
        on_cpu = inputs.device.type == "cpu" and inputs.is_contiguous()
        if not (self.training and self.p and on_cpu):
            return super().forward(inputs)
        scale = torch.empty(inputs.shape, dtype=inputs.dtype)
        drawn = torch.empty(min(_CHUNK, scale.numel()), dtype=torch.float64)
        for part in scale.view(-1).split(_CHUNK):
            torch.lt(drawn[: len(part)].uniform_(), 1 - self.p, out=part)
        return inputs * scale.div_(1 - self.p)
