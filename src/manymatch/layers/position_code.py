"""The sine position code of sequences."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sine_code(length: int, size: int, device: torch.device | None = None) -> Tensor:
    """`(length, size)`: sines in even columns, cosines in odd ones, wavelengths 2 pi to 20000 pi.

    References:
        Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.5.
    """
    position = torch.arange(length, device=device, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, size, 2, device=device) * (-math.log(10000.0) / size))
    angles = position * rate
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :size]
