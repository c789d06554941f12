"""The best assignment of few rows to few columns, by dynamic programming over sets of columns.

`best(S) = max over c in S of best(S - {c}) + value(|S|, c)`: the first |S| rows on the columns S.
All pairs of sets at once: every step is an addition or a maximum of whole planes. The assignment
is not traced back. It is carried along: values are rounded to whole multiples of a small step,
and the digits behind them spell the columns, so that the largest number names its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb

import torch
from torch import Tensor

_MOST_ADDITIONS = 1100
"""Up to 8 x 8 (1,016); beyond, `path_assignment` is as fast or faster."""
_MANTISSA = 53
"""Bits of the integers that float64 holds exactly."""
_COARSEST, _FINEST = 26, 30
"""Bits behind the point that values keep: 2^-27 at most is lost, less than float32 rounds near 1
(2^-25). More than the finest would only narrow the range of values."""


def fits(values: Tensor) -> bool:
    """Whether it is fast for `values (R, C, *pairs)`, and as precise as they are."""
    n_rows, n_columns = values.shape[:2]
    additions = sum(size * comb(n_columns, size) for size in range(2, n_rows + 1))
    precise = _Digits(n_rows, n_columns).fraction >= _COARSEST
    return values.dtype == torch.float32 and precise and additions <= _MOST_ADDITIONS


def subset_assignment(values: Tensor) -> Tensor:
    """The column of each row, `(R, *pairs)`, that maximises the sum of `values (R, C, *pairs)`.

    Needs R <= C and `fits`. Exact for values within +-3 (larger ones count as 3) that are rounded
    to `2^-_COARSEST` or finer. Of equal sums that whose last row has the highest column, then the
    last but one, and so on (the last row left out where R = C). With a NaN: row k has column k.
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


def _larger(one: Tensor, other: Tensor) -> Tensor:
    return torch.maximum(one, other, out=one)


def _splits(columns: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Each column and the others, in order."""
    return [(columns[:at] + columns[at + 1 :], columns[at]) for at in range(len(columns))]


@dataclass(frozen=True)
class _Digits:
    """How a float64 holds a sum of values and, behind it, a digit for the column of each row."""

    n_rows: int
    n_columns: int

    @property
    def width(self) -> int:
        """Bits of a digit."""
        return (self.n_columns - 1).bit_length()

    @property
    def count(self) -> int:
        """Rows that have one: where R = C, the last row has the column that is left."""
        return self.n_rows - (self.n_rows == self.n_columns)

    @property
    def fraction(self) -> int:
        """Bits behind the point that a value keeps, so that R values up to 4 can be summed."""
        room = _MANTISSA - self.width * self.count - (self.n_rows - 1).bit_length() - 2
        return min(_FINEST, room)

    def write(self, values: Tensor) -> Tensor:
        """`values (R, C, *pairs)` as float64 whole numbers, each ending in its column's digit."""
        after = self.width * self.count
        largest = 0.75 * 2.0 ** (_MANTISSA - after - (self.n_rows - 1).bit_length())
        steps = (values * 2.0**self.fraction).round_().clamp_(-largest, largest)
        return steps.mul_(2.0**after).double().add_(_planes(self._codes(), values))

    def _codes(self) -> list[list[float]]:
        """The digit of every column in every row, at the row's place."""
        places = [self.width * row for row in range(self.count)]
        codes = [[float(column << place) for column in range(self.n_columns)] for place in places]
        return codes + [[0.0] * self.n_columns] * (self.n_rows - self.count)

    def read(self, numbers: Tensor) -> Tensor:
        """The columns `(R, *pairs)` that the best sums `(*pairs)` spell."""
        diagonal = sum(codes[row] for row, codes in enumerate(self._codes()))
        places = torch.arange(self.count, device=numbers.device) * self.width
        places = places.view(-1, *[1] * numbers.ndim)
        columns = numbers.nan_to_num(nan=diagonal).long() >> places & 2**self.width - 1
        if self.count == self.n_rows:
            return columns
        left = sum(range(self.n_columns)) - columns.sum(0, keepdim=True)
        return torch.cat([columns, left])


def _planes(constants: list[list[float]], values: Tensor) -> Tensor:
    """A number for each of the planes `values (R, C, *pairs)`, as float64 `(R, C, 1, ...)`."""
    numbers = torch.tensor(constants, dtype=torch.float64, device=values.device)
    return numbers.view(*numbers.shape, *[1] * (values.ndim - 2))
