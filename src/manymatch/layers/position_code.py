"""Sine position codes of sequences."""

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
    """`(length, size)`: the code of the places 0, 1, ..., length - 1.

    Of type `dtype`, and computed in it or, if it is of half precision, in float32: angles go far
    beyond what a half can tell apart.

    References:
        Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.5. The released codes of
        VSE-infinity (pooling) and CORA (order of the regions) use this code.
    """
    kind = torch.promote_types(dtype, torch.float32)
    return _waves(torch.arange(length, device=device, dtype=kind), size).to(dtype)


def relative_sine_code(mask: Tensor, size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """`(n, R, size)`: the code of each place relative to its sample's own length.

    The n-th of a sample's N real inputs is at `2 pi n / (N + 1e-6)`, n = 1..N, so that every
    sample spans the same range and padding moves no place.

    Args:
        mask: `(n, R)` bool, True where an input is real. The code of padding means nothing.
        size: W, the number of channels.
        dtype: of the code and, unless it is of half precision, of its computation.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, released code, whose N counts padding too.
    """
    kind = torch.promote_types(dtype, torch.float32)
    lengths = mask.sum(1, keepdim=True).to(kind) + 1e-6
    return _waves(2 * math.pi * mask.cumsum(1).to(kind) / lengths, size).to(dtype)


def _waves(places: Tensor, size: int) -> Tensor:
    """`(..., size)` of `places (...)`: `sin(place / 10000^(j/size))` in even channels j, and in
    the odd channel after each the cosine of the same angle."""
    even = torch.arange(0, size, 2, device=places.device, dtype=places.dtype)
    angles = places[..., None] * torch.exp(even * (-math.log(10000.0) / size))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :size]
