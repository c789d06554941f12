"""The best assignment of any number of rows to columns, for many pairs of sets in step.

Each row is added along a shortest augmenting path (Jonker and Volgenant, Computing 38, 1987;
Crouse, IEEE Trans. AES 52, 2016), for all pairs together: a step of the search closes one column of
every pair that is still searching. Prices make the result exact: after each row, `cost - row price
- column price >= 0`, and 0 where matched.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_LARGEST = 1e100
"""Limit of values, whose sums then stay finite, so that the search reaches every column."""


def path_assignment(values: Tensor) -> Tensor:
    """The column of each row, `(R, *pairs)`, that maximises the sum of `values (R, C, *pairs)`.

    R <= C; the computation is in float64. All pairs together take at most `R (R + 1) / 2` search
    steps. A step is about twenty operations on `(pairs, C)` for the pairs that are still searching,
    and waits for the device to count these pairs. NaN counts as 0, infinity as 1e100.
    """
    n_rows = len(values)
    finite = values.double().nan_to_num().clamp(-_LARGEST, _LARGEST)
    matching = _Matching(-finite.flatten(2).permute(2, 0, 1))
    for row in range(n_rows):
        matching.add(row)
    return matching.column_of.T.reshape(n_rows, *values.shape[2:])


class _Paths(NamedTuple):
    """Shortest paths from one row to columns, for every pair of sets."""

    length: Tensor
    """`(P, C)` to each column reached."""
    row_before: Tensor
    """`(P, C)`: the row from which the path enters the column."""
    closed: Tensor
    """`(P, C)`: the path is known to be shortest."""
    end: Tensor
    """`(P, 1)`: the first free column."""


class _Matching:
    """A matching of rows and columns at `costs (P, R, C)`: `column_of (P, R)` is the column of each
    row, `row_of (P, C)` the row of each column; -1 without a match."""

    def __init__(self, costs: Tensor) -> None:
        n_pairs, n_rows, n_columns = costs.shape
        self.costs = costs.contiguous()
        self.row_price = costs.new_zeros(n_pairs, n_rows)
        self.column_price = costs.new_zeros(n_pairs, n_columns)
        self.column_of = costs.new_full((n_pairs, n_rows), -1, dtype=torch.int64)
        self.row_of = costs.new_full((n_pairs, n_columns), -1, dtype=torch.int64)

    def add(self, row: int) -> None:
        """Match `row`; other rows change their columns where this is best."""
        paths = self._search(row)
        self._change_prices(row, paths)
        self._follow(paths)

    def _search(self, row: int) -> _Paths:
        """Dijkstra's search from `row` to the first free column."""
        length = torch.full_like(self.column_price, torch.inf)
        row_before = torch.zeros_like(self.row_of)
        closed = torch.zeros_like(self.row_of, dtype=torch.bool)
        end = torch.zeros_like(self.row_of[:, :1])
        pairs = torch.arange(len(length), device=length.device)  # those still searching
        at, so_far = torch.full_like(pairs, row), torch.zeros_like(length[:, 0])
        while len(pairs):
            start = so_far - self.row_price[pairs, at]
            onward = self.costs[pairs, at].sub_(self.column_price[pairs]).add_(start[:, None])
            known, shut = length[pairs], closed[pairs]
            shorter = (onward < known) & ~shut
            known = torch.where(shorter, onward, known)
            length[pairs] = known
            row_before[pairs] = torch.where(shorter, at[:, None], row_before[pairs])
            so_far, column = known.masked_fill_(shut, torch.inf).min(1)
            closed[pairs, column] = True
            end[pairs, 0] = column
            at = self.row_of[pairs, column]
            going = (at >= 0).nonzero()[:, 0]
            pairs, at, so_far = pairs[going], at[going], so_far[going]
        return _Paths(length, row_before, closed, end)

    def _change_prices(self, row: int, paths: _Paths) -> None:
        """Change prices so that all edges of the shortest paths have no cost."""
        total = paths.length.gather(1, paths.end)
        change = torch.where(paths.closed, total - paths.length, 0)
        self.column_price -= change
        matched = self.row_of.clamp(min=0)
        self.row_price.scatter_add_(1, matched, change.masked_fill_(self.row_of < 0, 0))
        self.row_price[:, row] += total[:, 0]

    def _follow(self, paths: _Paths) -> None:
        """Match along the paths, from their ends back to the new row."""
        column = paths.end[:, 0]
        pairs = torch.arange(len(column), device=column.device)
        while len(pairs):
            row = paths.row_before[pairs, column]
            self.row_of[pairs, column] = row
            freed = self.column_of[pairs, row]
            self.column_of[pairs, row] = column
            going = (freed >= 0).nonzero()[:, 0]
            pairs, column = pairs[going], freed[going]
