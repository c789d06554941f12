"""The one-to-one assignment of the elements of two sets that maximises a sum."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.blocks import pieces
from manymatch.similarities.path_assignment import path_assignment
from manymatch.similarities.subset_assignment import fits, subset_assignment
from manymatch.system.parallel_map import side_by_side


@torch.no_grad()
def best_columns(values: Tensor) -> Tensor:
    """For `values (R, C, n, m)` with R <= C the column `(R, n, m)` of each row, no two the same,
    so that the sum of the values there is the greatest, for each of the n m pairs.

    Exact: by dynamic programming over sets of columns for float32 up to 8 x 8 (and a little
    beyond where R is small), else by shortest augmenting paths in float64. Ties are broken the
    same way every time.
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
