"""Sine position codes of sequences."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=16)  # a GPU would start eight kernels for each code of each batch
@torch.inference_mode(False)  # training keeps a code that validation has made
def sine_code(
    length: int,
    size: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """`(length, size)`: the code of the positions 0, 1, ..., length - 1.

    The code has the type `dtype`. It is computed in float32 if `dtype` has half precision, which is
    too coarse for large angles.

    References:
        Vaswani et al., Attention Is All You Need, NeurIPS 2017, section 3.5. CORA's released code
        uses this code in VSE-infinity's GPO and for the order of the regions.
    """
    kind = torch.promote_types(dtype, torch.float32)
    return _waves(torch.arange(length, device=device, dtype=kind), size).to(dtype)


def relative_sine_code(mask: Tensor, size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """`(n, R, size)`: the code of each position relative to the length of its sample.

    The position of the n-th of a sample's N real inputs is `2 pi n / (N + 1e-6)`, n = 1..N, so that
    every sample spans the same range and padding changes no position.

    Args:
        mask: `(n, R)` bool, True for real inputs. The code of padding has no meaning.
        size: W, the number of channels.
        dtype: type of the code and, unless it has half precision, of its computation.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, released code. There N counts padding too.
    """
    number = mask.cumsum(1, dtype=torch.promote_types(dtype, torch.float32))
    return _waves(2 * math.pi * number / (number[:, -1:] + 1e-6), size).to(dtype)


def _waves(positions: Tensor, size: int) -> Tensor:
    """`(..., size)` of `positions (...)`: `sin(position / 10000^(j/size))` in even channels j, and
    the cosine of the same angle in the odd channel behind it."""
    even = torch.arange(0, size, 2, device=positions.device, dtype=positions.dtype)
    angles = positions[..., None] * torch.exp(even * (-math.log(10000.0) / size))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :size]
