"""Sinkhorn against a naive loop and POT, at its extremes, and to a tolerance."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from manymatch.losses import optimal_transport
from manymatch.losses.optimal_transport import (
    assignments,
    class_potentials,
    marginal_error,
    sinkhorn,
    transport,
)
from manymatch.util.errors import DataError

SHARP = [(0.01, 20.0), (0.025, 5.0)]
SHAPES = [(6, 4), (3, 7), (1, 5), (5, 1)]


def log_p_of(n, n_classes, tau=1.0, size=5, seed=0, dtype=torch.float64):
    """Log-probabilities of random directions under random prototypes."""
    generator = torch.Generator().manual_seed(seed)
    vectors, prototypes = (
        normalize(torch.randn(count, size, generator=generator, dtype=dtype), dim=1)
        for count in (n, n_classes)
    )
    return (vectors @ prototypes.T / tau).log_softmax(1)


def naive(log_p, eta, rounds):
    """Scale columns to N / n_classes, then rows to 1, entry by entry."""
    plan = [[eta * float(value) for value in row] for row in log_p]
    share = math.log(len(plan) / len(plan[0]))
    for _ in range(rounds):
        for j in range(len(plan[0])):
            total = log_sum([row[j] for row in plan])
            for row in plan:
                row[j] += share - total
        plan = [[value - log_sum(row) for value in row] for row in plan]
    return torch.tensor([[math.exp(value) for value in row] for row in plan], dtype=torch.float64)


def log_sum(values):
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("tau", "eta"), [(1.0, 1.0), *SHARP])
def test_rounds_equal_the_naive_loop_and_a_tolerance_is_reached(shape, tau, eta):
    log_p = log_p_of(*shape, tau).requires_grad_()
    for rounds in (1, 2, 5):
        plan = sinkhorn(log_p, eta, rounds=rounds)
        assert not plan.requires_grad
        torch.testing.assert_close(plan, naive(log_p, eta, rounds), atol=1e-9, rtol=0)
    if eta == 1.0:
        q = sinkhorn(log_p, eta, tolerance=1e-8)
        assert marginal_error(q) <= 1e-8 and not q.requires_grad
        torch.testing.assert_close(q.sum(1), torch.ones(shape[0], dtype=q.dtype))


@pytest.mark.parametrize(("n", "n_classes", "eta"), [(20, 12, 1.0), (12, 20, 10.0)])
def test_the_solution_is_that_of_pot(n, n_classes, eta):
    import ot  # takes half a second

    log_p = log_p_of(n, n_classes, tau=0.2)
    rows, columns = np.full(n, 1 / n), np.full(n_classes, 1 / n_classes)
    plan = ot.bregman.sinkhorn_log(
        rows, columns, -log_p.numpy(), 1 / eta, stopThr=1e-14, numItermax=100_000
    )
    result = sinkhorn(log_p, eta, tolerance=1e-10)
    torch.testing.assert_close(result, torch.from_numpy(plan) * n, atol=1e-8, rtol=0)
    by_rounds = sinkhorn(log_p, eta, rounds=2000)
    torch.testing.assert_close(by_rounds, result, atol=1e-7, rtol=0)


def test_equal_and_unreachable_columns_are_served():
    """Each row nearly certain of one of four classes out of eight, thousands of nats ahead."""
    log_p = torch.full((16, 8), -3000.0, dtype=torch.float64)
    log_p[torch.arange(16), torch.arange(16) % 4] = 0.0
    q = sinkhorn(log_p, 1.0, tolerance=1e-9)
    torch.testing.assert_close(q.sum(0), torch.full((8,), 2.0, dtype=q.dtype), atol=1e-8, rtol=0)


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize(("tau", "eta"), SHARP)
def test_single_precision_stays_finite_and_close(count, tau, eta):
    log_p = log_p_of(200, 90, tau)
    result = sinkhorn(log_p.float(), eta, rounds=count)
    torch.testing.assert_close(result.sum(1), torch.ones(200))
    torch.testing.assert_close(
        result.double(), sinkhorn(log_p, eta, rounds=count), atol=0.02, rtol=0
    )


def test_potentials_are_a_start_and_give_the_labels_of_some_rows():
    log_p = log_p_of(20, 8, 0.1)
    first = transport(log_p, 5.0, rounds=2)
    both = transport(log_p, 5.0, rounds=3, potentials=first.potentials)
    torch.testing.assert_close(both.q, sinkhorn(log_p, 5.0, rounds=5))
    potentials, _ = class_potentials(log_p, 5.0, rounds=3)
    rows = assignments(log_p[:4], 5.0, potentials)
    torch.testing.assert_close(rows, sinkhorn(log_p, 5.0, rounds=3)[:4])


def test_the_error_counts_the_worst_column():
    q = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.3, 0.1, 0.6, 0.0]])
    assert marginal_error(q).item() == pytest.approx(0.5 / 0.5)
    assert marginal_error(torch.tensor([[0.6, 0.4], [0.9, 0.1], [0.9, 0.1]])).item() == (
        pytest.approx(0.9)
    )


def half_possible(n, n_classes):
    """Log-probabilities and which classes a sample can have: about half, its own among them."""
    generator = torch.Generator().manual_seed(3)
    possible = torch.rand(n, n_classes, generator=generator) < 0.5
    possible[torch.arange(n), torch.arange(n) % n_classes] = True
    return log_p_of(n, n_classes, 0.2).masked_fill(~possible, -torch.inf), possible


def test_impossible_classes_get_nothing():
    log_p, possible = half_possible(12, 4)
    for dtype, close in ((torch.float32, 1e-5), (torch.float64, 1e-9)):
        result = sinkhorn(log_p.to(dtype), 2.0, rounds=4)
        assert (result[~possible] == 0).all()
        expected = naive(log_p.masked_fill(~possible, -1e5), 2.0, 4)
        torch.testing.assert_close(result.double(), expected, atol=close, rtol=0)
    result = sinkhorn(log_p, 2.0, tolerance=1e-9)
    assert (result[~possible] == 0).all()
    assert marginal_error(result) <= 1e-9
    torch.testing.assert_close(result, sinkhorn(log_p, 2.0, rounds=3000), atol=1e-8, rtol=0)


def test_too_few_possible_classes_do_not_reach_a_tolerance(monkeypatch):
    """Two of three samples can only be of the first of two classes, whose share is one and a
    half."""
    log_p = torch.tensor([[0.0, -math.inf], [0.0, -math.inf], [-1.0, -1.0]])
    monkeypatch.setattr(optimal_transport, "_MOST_ROUNDS", 50)
    assert transport(log_p, 1.0, tolerance=1e-6).rounds == 50
    assert sinkhorn(log_p, 1.0, rounds=50).isfinite().all()
    assert marginal_error(sinkhorn(log_p, 1.0, tolerance=0.6)) <= 0.6


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ((1, 2), math.nan, "NaN or infinity"),
        ((1, 2), math.inf, "NaN or infinity"),
        ((1,), -math.inf, "a class for all samples"),
        ((slice(None), 2), -math.inf, "a class for all samples"),
    ],
)
def test_what_cannot_be_assigned_is_refused(where, value, message):
    log_p = log_p_of(4, 3)
    log_p[where] = value
    for end in ({}, {"rounds": 2}, {"tolerance": 1e-3}):
        with pytest.raises(DataError, match=message):
            sinkhorn(log_p, 5.0, **end)
        with pytest.raises(DataError, match="a class for all samples"):
            sinkhorn(log_p[:0], 5.0, **end)


@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-1)])
def test_with_both_the_rounds_stop_at_the_tolerance(shape, dtype, tolerance):
    log_p = log_p_of(*shape, dtype=dtype)
    result = transport(log_p, 2.0, rounds=500, tolerance=tolerance)
    assert result.error <= tolerance
    assert result.rounds < 500
    torch.testing.assert_close(result.q, sinkhorn(log_p, 2.0, rounds=result.rounds))
    if result.rounds > 1:
        fewer = transport(log_p, 2.0, rounds=result.rounds - 1, tolerance=tolerance)
        assert fewer.rounds == result.rounds - 1 and fewer.error > tolerance


def test_no_rounds_are_refused():
    with pytest.raises(ValueError, match="sinkhorn: 0 rounds"):
        sinkhorn(log_p_of(4, 3), 5.0, 0, 1e-3)
