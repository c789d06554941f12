"""Operations on segments: sets of unequal size as one flat tensor, with the set of each row."""

from __future__ import annotations

import torch
from torch import Tensor


def segment_sum(rows: Tensor, segment: Tensor, count: int) -> Tensor:
    """`(count, ...)` sums of the `rows (V, ...)` of each segment; 0 for an empty one."""
    return rows.new_zeros(count, *rows.shape[1:]).index_add(0, segment, rows)


def segment_mean(rows: Tensor, segment: Tensor, count: int) -> Tensor:
    """`(count, ...)` means of the `rows (V, ...)` of each segment; 0 for an empty one."""
    sizes = torch.bincount(segment, minlength=count).clamp(min=1)
    return segment_sum(rows, segment, count) / sizes.view(-1, *[1] * (rows.dim() - 1))


def segment_softmax(scores: Tensor, segment: Tensor, count: int) -> Tensor:
    """Softmax of each column of `scores (E, H)` over the rows of each segment."""
    rows = segment[:, None].expand_as(scores)
    highest = scores.detach().new_full((count, scores.shape[1]), -torch.inf)
    highest = highest.scatter_reduce(0, rows, scores.detach(), "amax")
    weights = (scores - highest[segment]).exp()
    return weights / segment_sum(weights, segment, count)[segment]


def pad_segments(
    rows: Tensor, segment: Tensor, count: int, width: int | None = None
) -> tuple[Tensor, Tensor]:
    """The rows of each segment side by side: `(count, K, ...)`, zero where padded, and the mask.

    Args:
        rows: `(V, ...)`.
        segment: `(V,)`, ascending.
        count: number of segments.
        width: K, at least the size of the largest segment; None: that size.
    """
    sizes = torch.bincount(segment, minlength=count)
    starts = sizes.cumsum(0) - sizes
    position = torch.arange(len(segment), device=segment.device) - starts[segment]
    width = int(sizes.max()) if width is None else width
    padded = rows.new_zeros(count, width, *rows.shape[1:])
    mask = torch.arange(width, device=segment.device) < sizes[:, None]
    return padded.index_put((segment, position), rows), mask


def scattered(rows: Tensor, mask: Tensor) -> Tensor:
    """`(n, R, D)`: the flat `rows (V, D)` where `mask (n, R)` is True, zero elsewhere."""
    placed = torch.zeros(*mask.shape, rows.shape[1], dtype=rows.dtype, device=rows.device)
    return placed.masked_scatter(mask[:, :, None], rows)


def segment_pairs(first: Tensor, second: Tensor, count: int) -> Tensor:
    """`(2, E)` pairs of row numbers: each row of `first` with each row of `second` that belongs to
    the same segment.

    Args:
        first, second: `(V,)`, `(W,)` segments of the rows, ascending.
        count: at least the number of segments.
    """
    sizes = torch.bincount(second, minlength=count)
    starts, repeats = sizes.cumsum(0) - sizes, sizes[first]
    rows = torch.arange(len(first), device=first.device).repeat_interleave(repeats)
    before = (repeats.cumsum(0) - repeats)[rows]
    position = torch.arange(len(rows), device=first.device) - before
    return torch.stack([rows, starts[first[rows]] + position])
