"""The best assignment of few rows to few columns, by dynamic programming over sets of columns.

`best(S) = max over c in S of best(S - {c}) + value(|S|, c)`: the first |S| rows on the columns S.
All pairs of sets are handled at once: every step is an addition or a maximum of whole planes. The
assignment is not traced back but carried along. Values are rounded to multiples of a small step,
and the lower digits of the number hold the columns, so that the largest number holds its
assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb

import torch
from torch import Tensor

_MOST_ADDITIONS = 1100
"""The limit includes 8 x 8 (1,016); beyond it `path_assignment` is as fast or faster."""
_MANTISSA = 53
"""Bits of the integers that float64 holds exactly."""
_COARSEST, _FINEST = 26, 30
"""Bits behind the point that values keep. The rounding error is at most 2^-27, less than float32's
near 1 (2^-25). More bits than the finest would only narrow the range of values."""


def fits(values: Tensor) -> bool:
    """Whether `subset_assignment` is fast for `values (R, C, *pairs)` and loses no precision."""
    n_rows, n_columns = values.shape[:2]
    additions = sum(size * comb(n_columns, size) for size in range(2, n_rows + 1))
    precise = _Digits(n_rows, n_columns).fraction >= _COARSEST
    return values.dtype == torch.float32 and precise and additions <= _MOST_ADDITIONS


def subset_assignment(values: Tensor) -> Tensor:
    """The column of each row, `(R, *pairs)`, that maximises the sum of `values (R, C, *pairs)`.

    R <= C, and `fits(values)`. The result is exact for values within +-3 (larger values count as 3)
    that are rounded to `2^-_COARSEST` or finer. Among equal sums, the assignment with the highest
    column in the last row is taken, then in the row before, and so on (without the last row if
    R = C). If a pair has a NaN, row k has column k.
    """
    digits = _Digits(values.shape[0], values.shape[1])
    return digits.read(_best(digits.write(values)))


def _best(numbers: Tensor) -> Tensor:
    rows = [row.unbind(0) for row in numbers.unbind(0)]
    best: dict[tuple[int, ...], Tensor] = {(at,): number for at, number in enumerate(rows[0])}
    for size, row in enumerate(rows[1:], 2):
        best = {
            columns: reduce(_larger, (best[rest] + row[last] for rest, last in _splits(columns)))
            for columns in combinations(range(len(row)), size)
        }
    return reduce(torch.maximum, best.values())


def _larger(best: Tensor, other: Tensor) -> Tensor:
    return torch.maximum(best, other, out=best)


def _splits(columns: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Each column and the others, in order."""
    return [(columns[:at] + columns[at + 1 :], columns[at]) for at in range(len(columns))]


@dataclass(frozen=True)
class _Digits:
    """The format of a float64 that holds a sum of values and a digit for the column of each row."""

    n_rows: int
    n_columns: int

    @property
    def width(self) -> int:
        """The number of bits of a digit."""
        return (self.n_columns - 1).bit_length()

    @property
    def count(self) -> int:
        """The number of rows with a digit: if R = C, the last row gets the remaining column."""
        return self.n_rows - (self.n_rows == self.n_columns)

    @property
    def fraction(self) -> int:
        """The number of bits behind the point, such that R values up to 4 can be summed."""
        room = _MANTISSA - self.width * self.count - (self.n_rows - 1).bit_length() - 2
        return min(_FINEST, room)

    def write(self, values: Tensor) -> Tensor:
        """`values (R, C, *pairs)` as float64 whole numbers, each ending in its column's digit."""
        after = self.width * self.count
        largest = 0.75 * 2.0 ** (_MANTISSA - after - (self.n_rows - 1).bit_length())
        steps = (values * 2.0**self.fraction).round_().clamp_(-largest, largest)
        rows, columns = (torch.arange(size, device=values.device) for size in values.shape[:2])
        # Each column's digit at its row's bits.
        codes = (columns << rows[:, None] * self.width) * (rows < self.count)[:, None]
        codes = codes.view(*codes.shape, *[1] * (values.ndim - 2))
        return steps.mul_(2.0**after).double().add_(codes)

    def read(self, numbers: Tensor) -> Tensor:
        """The columns `(R, *pairs)` in the digits of the best sums `(*pairs)`."""
        diagonal = float(sum(row << row * self.width for row in range(self.count)))
        shifts = torch.arange(self.count, device=numbers.device) * self.width
        shifts = shifts.view(-1, *[1] * numbers.ndim)
        columns = numbers.nan_to_num(nan=diagonal).long() >> shifts & 2**self.width - 1
        if self.count == self.n_rows:
            return columns
        remaining = sum(range(self.n_columns)) - columns.sum(0, keepdim=True)
        return torch.cat([columns, remaining])
