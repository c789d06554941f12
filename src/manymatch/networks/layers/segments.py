"""Operations on segments: sets of unequal size as one flat tensor, with the set of each row."""

import torch
from torch import Tensor

from manymatch.batch.padding import PaddedRows, Sequences


def segment_sum(rows: Tensor, segment: Tensor, count: int) -> Tensor:
    """`(count, ...)` sums of the `rows (V, ...)` of each segment; 0 for an empty one."""
    return rows.new_zeros(count, *rows.shape[1:]).index_add(0, segment, rows)


def segment_mean(rows: Tensor, segment: Tensor, count: int) -> Tensor:
    """`(count, ...)` means of the `rows (V, ...)` of each segment; 0 for an empty one."""
    sizes = segment_sum(torch.ones_like(segment), segment, count).clamp(min=1)
    return segment_sum(rows, segment, count) / sizes.view(-1, *[1] * (rows.dim() - 1))


def segment_max(rows: Tensor, segment: Tensor, count: int) -> Tensor:
    """`(count, H)` largest numbers of the `rows (V, H)` of each segment; -inf for an empty one."""
    highest = rows.new_full((count, rows.shape[1]), -torch.inf)
    return highest.scatter_reduce(0, segment[:, None].expand_as(rows), rows, "amax")


def gathered(padded: Tensor, padding: PaddedRows) -> Tensor:
    """`(V, ...)`: the real rows of `padded (n, R, ...)`."""
    flat = padded.flatten(0, 1)
    return flat if padding.all_real else flat.index_select(0, padding.rows)


def scattered(rows: Tensor, padding: PaddedRows | Sequences) -> Tensor:
    """`(n, R, ...)`: the real rows `rows (V, ...)` in their places, zero elsewhere."""
    if isinstance(padding, PaddedRows) and padding.all_real:
        return rows.unflatten(0, padding.mask.shape)
    placed = rows.new_zeros(padding.mask.numel(), *rows.shape[1:])
    return placed.index_copy(0, padding.rows, rows).unflatten(0, padding.mask.shape)
