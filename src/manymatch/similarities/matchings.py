"""MaxMatch: the best assignment of the elements of two sets, and the best pairs of elements."""

from __future__ import annotations

from functools import reduce
from itertools import combinations
from math import comb

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from manymatch.batch.parallel_map import map_parallel
from manymatch.similarities.blocks import pieces, scored


def max_match(images: Tensor, texts: Tensor) -> Tensor:
    """`1/K sum_k (exp(c[k, pi(k)]) - 1)`, c the cosines of the elements, pi the one-to-one
    assignment that maximises the sum of `c[k, pi(k)]` (not of the exponentials).

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised. If K and L differ, each element of the smaller set is
            matched to one of the larger set, and the mean is over the smaller set.

    Returns:
        `(n, m)` in [1/e - 1, e - 1]. pi has no gradient: gradients flow through the matched cosines
        alone. pi is the exact optimum for any K and L (see `best_columns`). Up to 8 x 8 in float32
        it costs little beside the matrix product; larger sets take several microseconds a pair, and
        the time grows with `K^2 L`.

    Relations:
        `top_match` takes the best cosines, whether one-to-one or not.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, eq. 2 and 4.
    """
    return scored(images, texts, _matched)


def _matched(cosines: Tensor) -> Tensor:
    n_image, n_text = cosines.shape[:2]
    smaller_first = cosines if n_image <= n_text else cosines.transpose(0, 1)
    columns = best_columns(smaller_first.detach())
    matched = smaller_first.gather(1, columns[:, None])[:, 0]
    scores = matched.exp_().mean(0) - 1
    if n_image != n_text:  # a NaN in an element without a match must reach the score
        scores = scores + 0 * cosines.detach().sum((0, 1))
    return scores


_MOST_COMPARISONS = 4000
"""Number of comparisons of planes up to which insertion of planes is faster than `torch.topk`."""


def top_match(images: Tensor, texts: Tensor, k: int | None = None) -> Tensor:
    """The mean of `exp(c) - 1` over the k largest of all K L cosines.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        k: from 1 to K L; None: the size of the smaller set, as in `max_match`.

    Returns:
        `(n, m)` in [1/e - 1, e - 1].

    Raises:
        ValueError: k is out of range.

    Relations:
        For the default k the score is never less than `max_match`. With k = 1 it ranks as `mil`.

    References:
        Alomari et al., Maximal Matching Matters (MaxMatch), ACL 2025, whose retrieval takes the
        most similar pairs, one-to-one or not; the paper states neither their number nor whether
        `exp(c) - 1` or the cosine is averaged. The former is what training compares (eq. 4).
    """
    (_, n_image, _), (_, n_text, _) = images.shape, texts.shape
    k = min(n_image, n_text) if k is None else k
    if not 1 <= k <= n_image * n_text:
        raise ValueError(f"k = {k}: expected 1 to {n_image * n_text}, the number of cosines")

    def mean_of_best(cosines: Tensor) -> Tensor:
        return largest_planes(cosines.flatten(0, 1), k).exp().mean(0) - 1

    return scored(images, texts, mean_of_best)


def largest_planes(planes: Tensor, k: int) -> Tensor:
    """The k largest of `planes (N, n, m)`: `(k, n, m)`, in descending order."""
    if planes.requires_grad or k * len(planes) > _MOST_COMPARISONS:
        return planes.topk(k, dim=0).values
    best: list[Tensor] = []
    for plane in planes.unbind(0):
        for rank, kept in enumerate(best):
            best[rank], plane = torch.maximum(kept, plane), torch.minimum(kept, plane)
        if len(best) < k:
            best.append(plane)
    return torch.stack(best)


@torch.no_grad()
def best_columns(values: Tensor) -> Tensor:
    """The column of each row in the one-to-one assignment with the largest sum, for n m pairs.

    The result is exact. Dynamic programming over sets of columns serves float32 values up to 8 x 8
    (and slightly larger ones if R is small), and SciPy in float64 all others, one pair at a time:
    at K = 4 SciPy takes 15 times as long. Equal sums always give the same assignment.

    Args:
        values: `(R, C, n, m)`, R <= C.

    Returns:
        `(R, n, m)` int64, different columns for the R rows of a pair.
    """
    solve = subset_assignment if fits(values) else scipy_assignment
    columns = values.new_empty(len(values), *values.shape[2:], dtype=torch.int64)

    def assign(part: slice) -> None:
        columns[:, part] = solve(values[:, :, part])

    parts = pieces(values)
    if values.device.type == "cpu" and torch.get_num_threads() > 1 and len(parts) > 1:
        map_parallel(assign, parts)
    else:
        for part in parts:
            assign(part)
    return columns


def scipy_assignment(values: Tensor) -> Tensor:
    """The column of each row, `(R, *pairs)`, that maximises the sum of `values (R, C, *pairs)`.

    R <= C; the computation is in float64. NaN counts as 0, infinity as 1e100.

    References:
        Crouse, On implementing 2D rectangular assignment algorithms, IEEE Transactions on Aerospace
        and Electronic Systems 52, 2016: SciPy's algorithm.
    """
    finite = values.double().nan_to_num().clamp(-_LARGEST, _LARGEST)
    tables = finite.flatten(2).permute(2, 0, 1).cpu().numpy()
    columns = [linear_sum_assignment(table, maximize=True)[1] for table in tables]
    assigned = np.array(columns, dtype=np.int64).reshape(len(tables), len(values))
    return torch.from_numpy(assigned).to(values.device).T.reshape(len(values), *values.shape[2:])


_LARGEST = 1e100
"""Limit of values, whose sums then stay finite."""
_MOST_ADDITIONS = 1100
"""The limit includes 8 x 8 (1,016); beyond it `scipy_assignment` is as fast or faster."""
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

    Dynamic programming over sets of columns: `best(S) = max over c in S of best(S - {c}) +
    value(|S|, c)` is the largest sum of the first |S| rows on the columns S. All pairs of sets are
    handled at once: each step is an addition or a maximum of whole planes. The assignment is not
    traced back: values are rounded to multiples of a small step, and the lower digits of a sum hold
    its columns, so that the largest sum holds its assignment.

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
            columns: reduce(
                _larger,
                (best[columns[:at] + columns[at + 1 :]] + row[columns[at]] for at in range(size)),
            )
            for columns in combinations(range(len(row)), size)
        }
    return reduce(torch.maximum, best.values())


def _larger(best: Tensor, other: Tensor) -> Tensor:
    return torch.maximum(best, other, out=best)


class _Digits:
    """The format of a float64 that holds a sum of values and a digit for the column of each row."""

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.n_rows, self.n_columns = n_rows, n_columns
        self.width = (n_columns - 1).bit_length()  # bits of a digit
        # Rows with a digit: if R = C, the last row gets the remaining column.
        self.count = n_rows - (n_rows == n_columns)
        # Bits behind the point, such that R values up to 4 can be summed.
        room = _MANTISSA - self.width * self.count - (n_rows - 1).bit_length() - 2
        self.fraction = min(_FINEST, room)

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
