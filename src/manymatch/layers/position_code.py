"""The sine position code of sequences."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sine_code(
    length: int,
    size: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """`(length, size)`: sines in even columns, cosines in odd ones, wavelengths 2 pi to 20000 pi.

    Of type `dtype`, and computed in it or, if it is of half precision, in float32: angles go far
    beyond what a half can tell apart.

    References:
        Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.5.
    """
    kind = torch.promote_types(dtype, torch.float32)
    position = torch.arange(length, device=device, dtype=kind)[:, None]
    even = torch.arange(0, size, 2, device=device, dtype=kind)
    angles = position * torch.exp(even * (-math.log(10000.0) / size))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :size].to(dtype)
