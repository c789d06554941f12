"""Boxes (n, 4), x1 y1 x2 y2 in pixels: overlap, suppression, anchors, and pooling of regions.

Suppression and pooling are torchvision's if it can be imported, else our equal functions: it cannot
be imported beside the CPU build of torch.
"""

import itertools
import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from manymatch.similarities.blocks import runs

try:
    from torchvision import ops as fast
except (ImportError, RuntimeError, OSError):  # missing, or built for another torch
    fast = None

_MAX_LOG_GROWTH = math.log(1000 / 16)
"""Limit of a predicted logarithm of growth: from one cell to the longest image."""
_ROUNDS = 4
"""Rounds of suppression between two comparisons, each of which waits for a GPU."""


def overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """Return the intersection over union (n, m)."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2)
    return shared / (_areas(boxes)[:, None] + _areas(others) - shared)


def suppress(boxes: Tensor, scores: Tensor, threshold: float, most: int) -> Tensor:
    """Return the indexes of at most `most` remaining boxes, best first.

    Each remaining box removes the boxes with lower scores that it overlaps by more than
    `threshold`.
    """
    if fast is not None:
        kept: Tensor = fast.nms(boxes, scores, threshold)[:most]
        return kept
    left = scores.argsort(descending=True, stable=True)
    if boxes.device.type != "cpu":  # the loop below would wait for a GPU at each rank
        return left[surviving(boxes, scores[:, None], threshold)[left, 0]][:most]
    survivors: list[Tensor] = []
    while len(left) and len(survivors) < most:
        best, left = left[0], left[1:]
        survivors.append(best)
        left = left[overlaps(boxes[best][None], boxes[left])[0] <= threshold]
    return torch.stack(survivors) if survivors else left[:0]


def surviving(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return whether each of n boxes remains in each of C classes, (n, C) like the scores.

    This equals `suppress` in every class: a box remains if no remaining box with a higher score
    overlaps it. The rule is applied to all boxes of all classes at once until nothing changes,
    which takes about ten rounds. torchvision's `batched_nms` loops over the classes of so many
    boxes, and waits for a GPU at each.
    """
    remover, removed = (overlaps(boxes, boxes) > threshold).nonzero(as_tuple=True)
    ranks = scores.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    applies = ranks[remover] < ranks[removed]
    stays = before = torch.ones_like(scores, dtype=torch.bool)
    while True:
        for _ in range(_ROUNDS):
            before, hits = stays, applies & stays[remover]
            stays = ~torch.zeros_like(stays).index_add_(0, removed, hits)
        if torch.equal(before, stays):
            return stays


def anchor_grid(anchors: Tensor, height: int, width: int, stride: int) -> Tensor:
    """Return the anchors (A, 4) around the corner of every cell, (height * width * A, 4)."""
    y = torch.arange(height, device=anchors.device) * stride
    x = torch.arange(width, device=anchors.device) * stride
    y, x = torch.meshgrid(y, x, indexing="ij")
    corners = torch.stack([x, y, x, y], dim=-1).reshape(-1, 1, 4)
    return (corners + anchors).reshape(-1, 4)


def moved(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Move the centres of `boxes` by `deltas[:, :2]` sides, and scale by `exp(deltas[:, 2:])`."""
    sides = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + 0.5 * sides + deltas[:, :2] * sides
    half = 0.5 * sides * deltas[:, 2:].clamp(max=_MAX_LOG_GROWTH).exp()
    return torch.cat([centres - half, centres + half], dim=1)


def clipped(boxes: Tensor, height: int, width: int) -> Tensor:
    """Return the parts of `boxes` inside the image."""
    x, y = boxes[:, 0::2].clamp(0, width), boxes[:, 1::2].clamp(0, height)
    return torch.stack([x, y], dim=2).flatten(1)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)


def pool_regions(
    maps: Tensor, boxes: Tensor, size: int, scale: float, at_once: int
) -> Iterator[Tensor]:
    """RoI pooling (Girshick, ICCV 2015): the maximum in each of size x size bins of a region.

    The bins of many regions share many cells. Therefore the maxima of all rectangles whose sides
    are powers of two are computed once, and four of these rectangles, one in each corner, cover a
    bin. Yields (b, C, size, size) for `at_once` regions after another, in channels-last memory
    layout.

    Args:
        maps: (C, H, W).
        boxes: (k, 4) in pixels. One cell of the map covers `1 / scale` pixels.
        size: bins per side. A bin outside the map is 0.
        scale: cells per pixel.
    """
    if fast is not None:
        for part in boxes.split(at_once):
            yield fast.roi_pool(maps[None], [part], size, scale)
        return
    height, width = maps.shape[1:]
    top, bottom = _bins(boxes[:, 1], boxes[:, 3], size, height, scale)
    left, right = _bins(boxes[:, 0], boxes[:, 2], size, width, scale)
    tall, wide = _power(bottom - top), _power(right - left)
    levels = [1 + level for level in torch.stack([tall.amax(), wide.amax()]).tolist()]
    table = _maxima(maps, *levels)
    rows, columns = (
        [base + start.clamp(0, limit - 1) for start in (low, high - (1 << power))]
        for base, low, high, power, limit in (
            (tall * (levels[1] * height), top, bottom, tall, height),
            (wide * (height * width), left, right, wide, width),
        )
    )
    empty = (bottom <= top)[:, :, None] | (right <= left)[:, None, :]
    for part in runs(len(boxes), at_once):
        pooled: Tensor | None = None
        for row, column in itertools.product(rows, columns):
            values = table[(row[part] * width)[:, :, None] + column[part][:, None, :]]
            pooled = values if pooled is None else torch.maximum(pooled, values)
        assert pooled is not None
        yield pooled.masked_fill(empty[part][..., None], 0).permute(0, 3, 1, 2)


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
        rows.append(_shifted_maximum(rows[-1], 1 << level, dim=1))
    grid = []
    for row in rows:
        grid.append(row)
        for level in range(wide - 1):
            grid.append(_shifted_maximum(grid[-1], 1 << level, dim=2))
    return torch.stack([maxima.flatten(1).T for maxima in grid]).flatten(0, 1)


def _shifted_maximum(maps: Tensor, by: int, dim: int) -> Tensor:
    """Return the maximum of each cell and the cell `by` positions further."""
    padding = (0, by) if dim == 2 else (0, 0, 0, by)
    padded = F.pad(maps, padding, value=-torch.inf)
    return torch.maximum(maps, padded.narrow(dim, by, maps.shape[dim]))
