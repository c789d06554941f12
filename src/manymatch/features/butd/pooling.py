"""RoI pooling (Girshick, ICCV 2015): the maximum in each of 14 x 14 bins of a region.

The bins of many regions share many cells. Therefore the maxima of all rectangles whose sides are
powers of two are computed once, and four of these rectangles, one in each corner, cover a bin.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def pool_regions(maps: Tensor, boxes: Tensor, size: int, scale: float) -> Tensor:
    """Return the pooled regions (k, C, size, size), in channels-last memory layout.

    Args:
        maps: (C, H, W).
        boxes: (k, 4) in pixels. One cell of the map covers `1 / scale` pixels.
        size: bins per side. A bin outside the map is 0.
        scale: cells per pixel.
    """
    height, width = maps.shape[1:]
    top, bottom = _bins(boxes[:, 1], boxes[:, 3], size, height, scale)
    left, right = _bins(boxes[:, 0], boxes[:, 2], size, width, scale)
    tall, wide = _power(bottom - top), _power(right - left)
    levels = int(tall.max()) + 1, int(wide.max()) + 1
    table = _maxima(maps, *levels)
    pooled: Tensor | None = None
    for y in (top, bottom - (1 << tall)):
        for x in (left, right - (1 << wide)):
            row = tall * (levels[1] * height) + y.clamp(0, height - 1)
            column = wide * (height * width) + x.clamp(0, width - 1)
            values = table[(row * width)[:, :, None] + column[:, None, :]]
            pooled = values if pooled is None else torch.maximum(pooled, values)
    assert pooled is not None
    empty = (bottom <= top)[:, :, None] | (right <= left)[:, None, :]
    return pooled.masked_fill(empty[..., None], 0).permute(0, 3, 1, 2)


def _bins(low: Tensor, high: Tensor, size: int, limit: int, scale: float) -> tuple[Tensor, Tensor]:
    """Return the first and last + 1 cell (k, size) of each bin between two sides (k,)."""
    first, last = _rounded(low * scale), _rounded(high * scale)
    step = (last - first + 1).clamp(min=1) / size
    number = torch.arange(size, device=low.device)
    starts = (number * step[:, None]).floor() + first[:, None]
    ends = ((number + 1) * step[:, None]).ceil() + first[:, None]
    return starts.long().clamp(0, limit), ends.long().clamp(0, limit)


def _rounded(values: Tensor) -> Tensor:
    """Round halves away from zero, as C does. torch rounds them to the even neighbour."""
    whole = values.trunc()
    return whole + ((values - whole).abs() >= 0.5) * values.sign()


def _power(lengths: Tensor) -> Tensor:
    """Return the exponent of the largest power of two up to `lengths`; 0 for lengths below 1."""
    return torch.frexp(lengths.clamp(min=1).float()).exponent.long() - 1


def _maxima(maps: Tensor, tall: int, wide: int) -> Tensor:
    """Return the maxima of all rectangles, (tall * H * wide * W, C).

    Row ((i * wide + j) * H + y) * W + x is the maximum of the 2^i x 2^j cells that start at y, x.
    """
    rows = [maps]
    for level in range(tall - 1):
        rows.append(_with_shifted(rows[-1], 1 << level, dim=1))
    grid = []
    for row in rows:
        grid.append(row)
        for level in range(wide - 1):
            grid.append(_with_shifted(grid[-1], 1 << level, dim=2))
    return torch.stack([maxima.flatten(1).T for maxima in grid]).flatten(0, 1)


def _with_shifted(maps: Tensor, by: int, dim: int) -> Tensor:
    """Return the maximum of each cell and the cell `by` positions further."""
    padding = (0, by) if dim == 2 else (0, 0, 0, by)
    padded = F.pad(maps, padding, value=-torch.inf)
    return torch.maximum(maps, padded.narrow(dim, by, maps.shape[dim]))
