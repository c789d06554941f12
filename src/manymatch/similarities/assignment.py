"""The one-to-one assignment of the elements of two sets that maximises a sum."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.batch.parallel_map import side_by_side
from manymatch.similarities.blocks import pieces
from manymatch.similarities.path_assignment import path_assignment
from manymatch.similarities.subset_assignment import fits, subset_assignment


@torch.no_grad()
def best_columns(values: Tensor) -> Tensor:
    """The column of each row in the one-to-one assignment with the largest sum, for n m pairs.

    The result is exact. Dynamic programming over sets of columns serves float32 values up to 8 x 8
    (and slightly larger ones if R is small), and shortest augmenting paths in float64 all others:
    at K = 4 these take 15 times as long. Equal sums always give the same assignment.

    Args:
        values: `(R, C, n, m)`, R <= C.

    Returns:
        `(R, n, m)` int64, different columns for the R rows of a pair.
    """
    solve = subset_assignment if fits(values) else path_assignment
    columns = values.new_empty(len(values), *values.shape[2:], dtype=torch.int64)

    def assign(part: slice) -> None:
        columns[:, part] = solve(values[:, :, part])

    parts = pieces(values)
    if values.device.type == "cpu" and torch.get_num_threads() > 1 and len(parts) > 1:
        side_by_side(assign, parts)
    else:
        for part in parts:
            assign(part)
    return columns
