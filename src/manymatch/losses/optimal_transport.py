"""Entropic optimal transport of samples to classes with uniform marginals (Sinkhorn)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from manymatch.similarities.vectors import full_precision
from manymatch.util.errors import DataError

_SMALLEST = -80.0
"""Smaller terms, in nats below the largest term, are raised to this value. Such terms change no
sum, and a CPU needs ten times as long for subnormal numbers."""
_ROWS_AT_ONCE = 64
"""Rows that a CPU handles at once: they fit into its cache, which halves the time."""
_ROUNDS = 3
"""The default number of rounds, without a tolerance; SwAMP's default in this project."""
_MOST_ROUNDS = 2_000
"""The most rounds to a tolerance. Where q is sharp, more may be needed, because mass moves along
chains of nearly tied rows, one link a round."""


class Transport(NamedTuple):
    """`q (N, n_classes)` with rows that sum to 1, `q_ij ~ exp(eta log p_ij + potentials_j)`.

    `potentials (n_classes,)`; `rounds`: the number of rounds; `error`: see `marginal_error`.
    """

    q: Tensor
    potentials: Tensor
    rounds: int
    error: float


def sinkhorn(
    log_p: Tensor, eta: float, rounds: int | None = None, tolerance: float | None = None
) -> Tensor:
    """Assign samples to classes by `log_p` so that every class is used equally.

    q maximises `sum q log p + H(q) / eta` under uniform marginals. After a fixed number of rounds
    rows sum to 1 and columns nearly to N / n_classes; with a tolerance columns sum to N / n_classes
    up to the tolerance. The function has no gradient.

    Args:
        log_p: `(N, n_classes)` log-probabilities. -inf marks a class that a sample cannot have;
            q is 0 there. Each sample needs a possible class, and each class a possible sample.
        eta: > 0, inverse regularisation.
        rounds: number of rounds; a round scales the columns, then the rows. Default without a
            tolerance: 3.
        tolerance: the `marginal_error` at which the rounds end. They end after `rounds` rounds even
            if the error is larger; without `rounds` after 2,000, in double precision.

    Returns:
        `(N, n_classes)` in the type of `log_p`, rows sum to 1.

    References:
        Cuturi, Sinkhorn Distances, NeurIPS 2013; Kim, SwAMP, AISTATS 2023, eq. 3 to 5, whose Q is
        this over N.

    Relations:
        `transport` also returns rounds and error. `class_potentials` and `assignments` are its two
        halves, for callers that need q of some rows only.

    Example:
        >>> sinkhorn(torch.tensor([[0.6, 0.4], [0.9, 0.1]]).log(), eta=1.0, tolerance=1e-6)
        tensor([[0.2899, 0.7101],
                [0.7101, 0.2899]])
    """
    return transport(log_p, eta, rounds, tolerance).q


@torch.no_grad()
def transport(
    log_p: Tensor,
    eta: float,
    rounds: int | None = None,
    tolerance: float | None = None,
    potentials: Tensor | None = None,
) -> Transport:
    """`sinkhorn` with potentials, rounds and error.

    Args:
        log_p, eta, rounds, tolerance: as for `sinkhorn`.
        potentials: `(n_classes,)` first potentials, such as those of a similar problem.

    Raises:
        DataError: `log_p` cannot be assigned.
        ValueError: `rounds` is less than 1.
    """
    if not (log_p < torch.inf).all():
        raise DataError("sinkhorn: log p holds NaN or infinity. Lower the learning rate.")
    possible = log_p > -torch.inf
    if not (possible.any(0).all() and possible.any(1).all()):
        raise DataError(
            "sinkhorn: log p excludes a class for all samples, or all classes for a sample"
        )
    potentials, taken = class_potentials(log_p, eta, rounds, tolerance, potentials)
    q = assignments(log_p, eta, potentials)
    return Transport(q, potentials, taken, float(marginal_error(q)))


@torch.no_grad()
def class_potentials(
    log_p: Tensor,
    eta: float,
    rounds: int | None = None,
    tolerance: float | None = None,
    start: Tensor | None = None,
) -> tuple[Tensor, int]:
    """The potentials `(n_classes,)`, in float64 where only a tolerance ends the rounds, and the
    number of rounds.

    The arguments are those of `transport`, but `log_p` is not checked.
    """
    exact = rounds is None and tolerance is not None
    most = _MOST_ROUNDS if exact else _ROUNDS if rounds is None else rounds
    if most < 1:
        raise ValueError(f"sinkhorn: {rounds} rounds. Set 1 or more.")
    scores = log_p.double() if exact else full_precision(log_p)
    return _round_potentials(scores, eta, most, tolerance, start)


@torch.no_grad()
def assignments(log_p: Tensor, eta: float, potentials: Tensor) -> Tensor:
    """The rows of q for some rows of `log_p`: `softmax(eta log p + potentials)`."""
    kind = torch.promote_types(full_precision(log_p).dtype, potentials.dtype)
    return (log_p.to(kind) * eta + potentials).softmax(1).to(log_p.dtype)


def marginal_error(q: Tensor) -> Tensor:
    """The largest difference of a column's sum and `N / n_classes`, in units of the smaller of
    `N / n_classes` and 1: a bound of both the relative and the absolute error of every column."""
    return _share_error(q.double().sum(0), q.shape[0] / q.shape[1])


def _share_error(sums: Tensor, share: float) -> Tensor:
    return (sums - share).abs().max() / min(1.0, share)


def _round_potentials(
    log_p: Tensor, eta: float, rounds: int, tolerance: float | None, start: Tensor | None
) -> tuple[Tensor, int]:
    """The potentials of the classes after `rounds` scalings of the columns, or fewer that reach the
    tolerance, and the number of scalings. `assignments` does the last scaling of the rows.

    Only the first scaling of the columns needs the log domain. From then on the columns of
    `exp(eta log p + potentials)` have equal sums up to a factor for each row. After the rows are
    scaled to 1 the sum of a column is at least 1 / n_classes, so that no column underflows.
    """
    share = log_p.shape[0] / log_p.shape[1]
    parts = log_p.split(_ROWS_AT_ONCE if log_p.device.type == "cpu" else len(log_p))
    columns = math.log(share) - _log_column_sums(parts, eta, start)
    for taken in range(1, rounds):
        sums = _column_sums(parts, eta, columns)
        if tolerance is not None and float(_share_error(sums, share)) <= tolerance:
            return columns, taken
        columns = columns - (sums / share).log()
    return columns, rounds


def _log_column_sums(parts: Sequence[Tensor], eta: float, potentials: Tensor | None) -> Tensor:
    """`(n_classes,)`: `log sum_i exp(eta log p_ij)`; with potentials the rows are scaled to 1
    first."""
    scores = [part * eta for part in parts]
    if potentials is not None:
        for part in scores:
            part.sub_((part + potentials.to(part)).logsumexp(1, keepdim=True))
    top = torch.stack([part.amax(0) for part in scores]).amax(0)
    sums = [part.sub_(top).clamp_(min=_SMALLEST).exp_().sum(0) for part in scores]
    return torch.stack(sums).sum(0).log_().add_(top)


def _column_sums(parts: Sequence[Tensor], eta: float, potentials: Tensor) -> Tensor:
    """`(n_classes,)`: sums of the columns of `softmax(eta log p + potentials)` over the rows."""

    def sums(part: Tensor) -> Tensor:
        terms = torch.add(potentials, part, alpha=eta)
        terms.sub_(terms.amax(1, keepdim=True)).clamp_(min=_SMALLEST).exp_()
        return terms.sum(1).reciprocal_() @ terms

    return reduce(torch.add, map(sums, parts))
