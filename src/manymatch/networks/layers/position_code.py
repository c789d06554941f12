"""Sine position codes of sequences and of grids."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from manymatch.util.errors import ConfigError


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


def grid_sine_code(ends: Tensor, size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """`(n, R, size)`: the code of the cells of grids by row and column.

    The first half of the channels codes the row, the second half the column. The position of the
    k-th of a grid's h rows is `2 pi k / h`, k = 1..h, and that of a column likewise.

    Args:
        ends: `(n, R, 2)`: where each cell ends to the right and below, in 0..1 of the image. A cell
            of the k-th of h rows ends at `k / h`, so that a cell alone tells both positions, for
            grids of any shape and whatever other cells are dropped or padding.
        size: W, the number of channels.
        dtype: type of the code and, unless it has half precision, of its computation.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, released code, which has DETR's code (Carion et al., ECCV 2020). There the
        positions are `2 pi k / (h + 1e-6)`, which differs by less than one millionth.
    """
    kind = torch.promote_types(dtype, torch.float32)
    across, down = (2 * math.pi * ends.to(kind)).unbind(-1)
    columns = size // 2
    return torch.cat([_waves(down, size - columns), _waves(across, columns)], -1).to(dtype)


def square_grid_ends(count: int, device: torch.device) -> Tensor:
    """`(1, count, 2)`: where the cells of a square grid end, row by row, as in `grid_sine_code`.

    Raises:
        ConfigError: `count` is not a square.
    """
    side = math.isqrt(count)
    if side * side != count:
        raise ConfigError(
            f"sets.position_code: the images have {count} features each without boxes, which is no "
            "square grid, so that their rows and columns are not known. Store the features with "
            "boxes, or set sets.position_code to false."
        )
    edges = torch.arange(1, side + 1, device=device) / side
    down, across = edges.repeat_interleave(side), edges.repeat(side)
    return torch.stack([across, down], -1)[None]


def _waves(positions: Tensor, size: int) -> Tensor:
    """`(..., size)` of `positions (...)`: `sin(position / 10000^(j/size))` in even channels j, and
    the cosine of the same angle in the odd channel behind it."""
    even = torch.arange(0, size, 2, device=positions.device, dtype=positions.dtype)
    angles = positions[..., None] * torch.exp(even * (-math.log(10000.0) / max(size, 1)))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :size]
