"""Entropic optimal transport of samples to classes with uniform marginals (Sinkhorn)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from manymatch.errors import DataError
from manymatch.losses.transport_dual import solve_dual
from manymatch.similarities.pairs import full_precision

# 2^-120 of the largest term changes no sum, and keeps exp2 from subnormal numbers, which cost a
# CPU ten times as much.
_SMALLEST = -120.0
_ROUNDS = 3
"""Where neither rounds nor a tolerance are asked for: as many as SwAMP takes here by default."""


class Transport(NamedTuple):
    """`q (N, n_classes)` with rows that sum to 1, `q_ij ~ exp(eta log p_ij + potentials_j)`.

    `potentials (n_classes,)`; `rounds` that it took; `error`: see `marginal_error`.
    """

    q: Tensor
    potentials: Tensor
    rounds: int
    error: float


def sinkhorn(
    log_p: Tensor, eta: float, rounds: int | None = None, tolerance: float | None = None
) -> Tensor:
    """Assign samples to classes by `log_p` such that every class is used equally.

    Maximises `sum q log p + H(q) / eta` under uniform marginals. After a fixed number of rounds
    rows sum to 1 and columns nearly to N / n_classes; to a tolerance, columns do too. Without
    gradient.

    Args:
        log_p: `(N, n_classes)` log-probabilities. -inf is a class that a sample cannot have, for
            which q is 0; each sample needs a possible class, each class a possible sample.
        eta: > 0, inverse regularisation.
        rounds: this many times, scale the columns, then the rows; 3 where neither this nor a
            tolerance is given.
        tolerance: the `marginal_error` to reach, by Newton's method; with `rounds`, by at most
            so many rounds, whether they suffice or not.

    Returns:
        `(N, n_classes)` in the type of `log_p`, rows sum to 1.

    References:
        Cuturi, Sinkhorn Distances, NeurIPS 2013; Kim, SwAMP, AISTATS 2023, eq. 3 to 5, whose Q is
        this over N.

    Relations:
        `transport` also tells rounds and error. `class_potentials` and `assignments` are its two
        halves, for those who want q of some rows only.

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
    """As `sinkhorn`, with all there is to know; `potentials` of a similar problem are a start.

    Raises:
        DataError: `log_p` cannot be assigned, or the tolerance cannot be reached: it is finer than
            double precision allows, or too few classes are possible for too many samples.
        ValueError: there are no rounds.
    """
    _check(log_p)
    found, done = class_potentials(log_p, eta, rounds, tolerance, potentials)
    q = assignments(log_p, eta, found)
    return Transport(q, found, done, float(marginal_error(q)))


@torch.no_grad()
def class_potentials(
    log_p: Tensor,
    eta: float,
    rounds: int | None = None,
    tolerance: float | None = None,
    start: Tensor | None = None,
) -> tuple[Tensor, int]:
    """`(n_classes,)` potentials, in float64 if by Newton's method, and the rounds or steps taken.

    `log_p` as `transport` takes it, but it is not checked.
    """
    if rounds is None and tolerance is not None:
        scores = log_p.double().cpu().numpy() * eta
        near = None if start is None else start.double().cpu().numpy()
        found, taken = solve_dual(scores, tolerance, near)
        return torch.from_numpy(found).to(log_p.device), taken
    rounds = _ROUNDS if rounds is None else rounds
    if rounds < 1:
        raise ValueError(f"sinkhorn: {rounds} rounds; expected 1 or more")
    return _after_rounds(full_precision(log_p), eta, rounds, tolerance, start)


@torch.no_grad()
def assignments(log_p: Tensor, eta: float, potentials: Tensor) -> Tensor:
    """The rows of q for some rows of `log_p`: `softmax(eta log p + potentials)`."""
    kind = torch.promote_types(full_precision(log_p).dtype, potentials.dtype)
    return (log_p.to(kind) * eta + potentials).softmax(1).to(log_p.dtype)


def marginal_error(q: Tensor) -> Tensor:
    """How far the columns' sums are from `N / n_classes` at most, in units of the smaller of that
    and 1; so it bounds the relative error of every column and the absolute one too."""
    target = q.shape[0] / q.shape[1]
    return (q.double().sum(0) - target).abs().max() / min(1.0, target)


def _check(log_p: Tensor) -> None:
    if not (log_p < torch.inf).all():
        raise DataError("sinkhorn: log p holds NaN or infinity")
    possible = log_p > -torch.inf
    if not (possible.any(0).all() and possible.any(1).all()):
        raise DataError(
            "sinkhorn: log p has a class that no sample can have, or a sample that can have none"
        )


def _after_rounds(
    log_p: Tensor, eta: float, rounds: int, tolerance: float | None, start: Tensor | None
) -> tuple[Tensor, int]:
    """Potentials after log-domain rounds, in base 2, and how many these were: `rounds`, or fewer
    that reach the tolerance. The last scaling of the rows is left to `assignments`."""
    scores = log_p * (eta / math.log(2.0))
    room = torch.empty_like(scores)
    target = math.log2(scores.shape[0] / scores.shape[1])
    rows = scores.new_zeros(scores.shape[0], 1)
    if start is not None:
        rows = -_log_sums(scores, start.to(scores) / math.log(2.0), 1, room)
    columns = target - _log_sums(scores, rows, 0, room)
    for taken in range(1, rounds):
        rows = -_log_sums(scores, columns, 1, room)
        after = target - _log_sums(scores, rows, 0, room)
        if tolerance is not None and _moved(columns, after, target) <= tolerance:
            return columns[0] * math.log(2.0), taken
        columns = after
    return columns[0] * math.log(2.0), rounds


def _moved(columns: Tensor, after: Tensor, target: float) -> float:
    """The `marginal_error` before a scaling of the columns: by how much it had to scale them."""
    return float((columns - after).exp2().sub(1).abs().max()) * max(1.0, 2.0**target)


def _log_sums(scores: Tensor, potentials: Tensor, dim: int, room: Tensor) -> Tensor:
    """`log2 sum 2^(scores + potentials)` along `dim`, kept; `room` is overwritten."""
    torch.add(scores, potentials, out=room)
    top = room.amax(dim, keepdim=True)
    room.sub_(top).clamp_(min=_SMALLEST).exp2_()
    return room.sum(dim, keepdim=True).log2_().add_(top)
