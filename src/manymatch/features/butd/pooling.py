"""RoI pooling (Girshick, ICCV 2015): the greatest value in each of 14 x 14 bins of a region.

The bins of many regions have many cells in common. So the maxima of all squares whose sides are
powers of two are computed once, and a bin is covered by four of them, one in each corner.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def pool_regions(maps: Tensor, boxes: Tensor, size: int, scale: float) -> Tensor:
    """(k, C, size, size) of a map (C, H, W) in boxes (k, 4) of pixels, of which the map has one
    for `1 / scale`. A bin outside the map is 0. The result is laid out with channels last."""
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
            index = _both(row * width, wide * (height * width) + x.clamp(0, width - 1))
            values = table[index]
            pooled = values if pooled is None else torch.maximum(pooled, values)
    assert pooled is not None
    empty = (bottom <= top)[:, :, None] | (right <= left)[:, None, :]
    return pooled.masked_fill(empty[..., None], 0).permute(0, 3, 1, 2)


def _bins(low: Tensor, high: Tensor, size: int, limit: int, scale: float) -> tuple[Tensor, Tensor]:
    """(k, size) first and last + 1 cell of each bin between two sides of the boxes (k,)."""
    first, last = _rounded(low * scale), _rounded(high * scale)
    step = (last - first + 1).clamp(min=1) / size
    number = torch.arange(size, device=low.device)
    starts = (number * step[:, None]).floor() + first[:, None]
    ends = ((number + 1) * step[:, None]).ceil() + first[:, None]
    return starts.long().clamp(0, limit), ends.long().clamp(0, limit)


def _rounded(values: Tensor) -> Tensor:
    """Halves away from zero, as C rounds; torch takes them to the even neighbour."""
    whole = values.trunc()
    return whole + ((values - whole).abs() >= 0.5) * values.sign()


def _power(lengths: Tensor) -> Tensor:
    """The logarithm of the greatest power of two that fits; 0 for lengths below 1."""
    return torch.frexp(lengths.clamp(min=1).float()).exponent.long() - 1


def _maxima(maps: Tensor, tall: int, wide: int) -> Tensor:
    """(tall * H * wide * W, C): row ((i * wide + j) * H + y) * W + x is the greatest value in the
    2^i x 2^j cells from y, x on."""
    rows = [maps]
    for level in range(tall - 1):
        rows.append(_with_shifted(rows[-1], 1 << level, dim=1))
    grid = []
    for row in rows:
        grid.append(row)
        for level in range(wide - 1):
            grid.append(_with_shifted(grid[-1], 1 << level, dim=2))
    return torch.stack([each.flatten(1).T for each in grid]).flatten(0, 1)


def _with_shifted(maps: Tensor, by: int, dim: int) -> Tensor:
    """The greater of a cell and the one `by` further on."""
    padding = (0, by) if dim == 2 else (0, 0, 0, by)
    padded = F.pad(maps, padding, value=-torch.inf)
    return torch.maximum(maps, padded.narrow(dim, by, maps.shape[dim]))


def _both(rows: Tensor, columns: Tensor) -> Tensor:
    """(k, size, size) sums of a row's and a column's part of an index, (k, size) each."""
    return rows[:, :, None] + columns[:, None, :]
