"""Entropic transport to a tolerance: Newton's method on the dual, from warm to cold.

Where q is sharp, Sinkhorn's rounds need thousands: mass moves along chains of nearly tied rows,
one link a round. Newton's method moves it at once. With rows always normalised, the potentials g
of the columns are the only unknowns. The dual `sum_i log sum_j exp(s_ij + g_j) - t sum_j g_j` is
convex, its gradient is `c - t` (c: sums of q's columns, t = N / n), its Hessian `diag(c) - q'q`.
Three things make it fast:

- only entries within `_WINDOW` nats of the largest of their row are looked at; they are chosen
  anew before any other could matter, so nothing is lost by it;
- Newton's equation is solved by conjugate gradients on the sparse q;
- while the solution is far, scores are scaled down until it is near, then up again by twos.

References:
    Cominetti and San Martin, Asymptotic analysis of the exponential penalty trajectory in linear
    programming, 1994; Schmitzer, Stabilized Sparse Scaling Algorithms for Entropy Regularized
    Transport Problems, 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from manymatch.losses.equal_shares import shares_can_be_equal
from manymatch.util.errors import DataError

Array = npt.NDArray[np.float64]

_REACH = 12.0
"""Nats that a potential may be off where Newton's method starts."""
_ROUGH = 1.0
"""Tolerance of solutions that only lead to the next scale."""
_STEP = 5.0
"""Nats that a potential moves at most in one step: beyond, q is quite another matrix."""
_STILL = 1e-12
"""Nats that are rounding alone."""
_WINDOW, _MARGIN = 100.0, 35.0
_MOST_STEPS, _MOST_PRODUCTS, _SHORTEST = 2000, 200, 1e-6
_PATIENCE = 20
"""Steps at one scale, more than most problems take, after which -inf are suspected."""
_DUST = 1e-7
"""Entries of q that the Hessian does without."""


def solve_dual(scores: Array, tolerance: float, start: Array | None = None) -> tuple[Array, int]:
    """Potentials g such that `softmax(scores + g)` over rows has equal sums of columns.

    Args:
        scores: `(N, n)` in nats (`eta log p`); -inf where a row cannot have a column.
        tolerance: the `sinkhorn.marginal_error` to reach.
        start: `(n,)` potentials that may be near.

    Returns:
        `(n,)` potentials of mean 0, and how many Newton steps it took.

    Raises:
        DataError: rounding does not allow so fine a tolerance, or -inf allows no equal sums.
    """
    potentials = np.zeros(scores.shape[1]) if start is None else start
    scale = min(1.0, _REACH / max(_distance(scores, potentials), _REACH))
    potentials, taken = potentials * scale, 0
    while scale < 1.0:
        potentials, steps = _newton(scores * scale, potentials, max(_ROUGH, tolerance))
        larger = min(1.0, 2 * scale)
        potentials, scale, taken = potentials * (larger / scale), larger, taken + steps
    potentials, steps = _newton(scores, potentials, tolerance)
    return potentials - potentials.mean(), taken + steps


def _distance(scores: Array, potentials: Array) -> float:
    """Nats by which the worst column lies behind in every row."""
    shifted = scores + potentials
    shifted -= shifted.max(1, keepdims=True)
    return float(-shifted.max(0).min())


class Point(NamedTuple):
    """The dual at some potentials: `q (N, n)`, sparse; sums of its columns; log of the rows' sums
    before they were normalised."""

    potentials: Array
    q: sparse.csr_matrix
    columns: Array
    log_rows: Array


class Dual:
    """The dual of one problem, evaluated on the entries that count near the last potentials."""

    def __init__(self, scores: Array, potentials: Array) -> None:
        self.scores = scores
        self.target = scores.shape[0] / scores.shape[1]
        self._choose(potentials)

    def at(self, potentials: Array) -> Point:
        point = self._evaluate(potentials)
        if self._complete(point):
            return point
        self._choose(potentials)
        return self._evaluate(potentials)

    def error(self, point: Point) -> float:
        return float(np.abs(point.columns - self.target).max() / min(1.0, self.target))

    def fall(self, before: Point, after: Point) -> float:
        """By how much the dual is lower at `after`."""
        moved = after.potentials - before.potentials
        return float(self.target * moved.sum() - (after.log_rows - before.log_rows).sum())

    def _choose(self, potentials: Array) -> None:
        """Keep the entries within `_WINDOW` of the largest of their row, row by row."""
        shifted = self.scores + potentials
        self.chosen_at, self.top = potentials, shifted.max(1)
        places = np.flatnonzero(shifted > (self.top - _WINDOW)[:, None])
        self.row, self.column = (part.astype(np.int32) for part in divmod(places, len(potentials)))
        self.starts = np.searchsorted(self.row, np.arange(len(self.top) + 1)).astype(np.int32)
        self.chosen = self.scores.ravel()[places]

    def _evaluate(self, potentials: Array) -> Point:
        # Relative to the largest at the choice: a step is far too short to overflow from there.
        terms = np.exp(self.chosen + potentials[self.column] - self.top[self.row])
        sums = np.add.reduceat(terms, self.starts[:-1])
        terms /= sums[self.row]
        columns: Array = np.bincount(self.column, terms, len(potentials)).astype(np.float64)
        q = sparse.csr_matrix((terms, self.column, self.starts), shape=self.scores.shape)
        return Point(potentials, q, columns, self.top + np.log(sums))

    def _complete(self, point: Point) -> bool:
        """Whether every entry left out is below exp(-_MARGIN) of its row's sum."""
        risen = (point.potentials - self.chosen_at).max()
        return bool((point.log_rows - self.top).min() + _WINDOW - risen > _MARGIN)


def _newton(scores: Array, potentials: Array, tolerance: float) -> tuple[Array, int]:
    """Potentials at which the error is at most `tolerance`, and the steps to them."""
    dual = Dual(scores, potentials)
    point = dual.at(potentials)
    for steps in range(_MOST_STEPS):
        error = dual.error(point)
        if error <= tolerance:
            return point.potentials, steps
        if steps == _PATIENCE:
            _check_pattern(scores)
        step = _step(point, dual.target, accuracy=min(0.1, error))
        if np.abs(step).max() < _STILL:
            break
        point = _descend(dual, point, step, tolerance)
    raise _unreachable(tolerance, error)


def _check_pattern(scores: Array) -> None:
    possible = scores > -np.inf
    if not possible.all() and not shares_can_be_equal(possible):
        raise DataError(
            "sinkhorn: -inf in log p leaves too few classes to too many samples: the tolerance "
            "cannot be reached. Set rounds"
        )


def _descend(dual: Dual, point: Point, step: Array, tolerance: float) -> Point:
    """The point after `step`, halved until the dual falls as its slope promises."""
    promised = float((dual.target - point.columns) @ step)
    rounding = 1e-10 * len(point.log_rows)
    length = 1.0
    while length > _SHORTEST:
        after = dual.at(point.potentials + length * step)
        if dual.fall(point, after) >= 1e-4 * length * promised - rounding:
            return after
        length /= 2
    raise _unreachable(tolerance, dual.error(point))


def _unreachable(tolerance: float, error: float) -> DataError:
    return DataError(
        f"sinkhorn: the error stays at {error:.1e} and does not reach the tolerance "
        f"{tolerance:.1e}; set a larger one, or rounds"
    )


def _step(point: Point, target: float, accuracy: float) -> Array:
    """A step that the dual falls along: Newton's, with each potential cut off at `_STEP`."""
    step = _newton_step(point, target, accuracy)
    cut = np.clip(step, -_STEP, _STEP)
    if (target - point.columns) @ cut > 0:
        return cut
    return step * (_STEP / np.abs(step).max())


def _newton_step(point: Point, target: float, accuracy: float) -> Array:
    """Newton's equation solved by preconditioned conjugate gradients.

    A little is added to the Hessian's diagonal, for columns that have next to no mass.
    """
    q, little = _without_dust(point.q), 1e-8 * target
    across, diagonal = q.T, point.columns + little
    scaling = np.maximum(diagonal - q.power(2).sum(0).A1, 1e-3 * diagonal)
    step, residual = np.zeros_like(diagonal), target - point.columns
    preconditioned = residual / scaling
    direction, size = preconditioned, residual @ preconditioned
    goal = accuracy**2 * size
    for _ in range(_MOST_PRODUCTS):
        product = diagonal * direction - across @ (q @ direction)
        length = size / (direction @ product)
        step, residual = step + length * direction, residual - length * product
        preconditioned = residual / scaling
        before, size = size, residual @ preconditioned
        if size <= goal:
            break
        direction = preconditioned + size / before * direction
    return step - step.mean()


def _without_dust(q: sparse.csr_matrix) -> sparse.csr_matrix:
    kept = q.data > _DUST
    starts = np.concatenate([[0], np.cumsum(kept)])[q.indptr]
    return sparse.csr_matrix((q.data[kept], q.indices[kept], starts), shape=q.shape)
