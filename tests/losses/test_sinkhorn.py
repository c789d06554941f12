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
from manymatch.losses.pseudo_labels import LabelSettings
from manymatch.util.errors import DataError

SHARP = [(0.01, 20.0), (0.025, 5.0)]
SHAPES = [(6, 4), (4, 4), (3, 7), (1, 5), (5, 1), (1, 1)]


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
    log_p = log_p_of(*shape, tau)
    for rounds in (1, 2, 5):
        plan = sinkhorn(log_p, eta, rounds=rounds)
        torch.testing.assert_close(plan, naive(log_p, eta, rounds), atol=1e-9, rtol=0)
    if eta == 1.0:
        q = sinkhorn(log_p, eta, tolerance=1e-8)
        assert marginal_error(q) <= 1e-8
        torch.testing.assert_close(q.sum(1), torch.ones(shape[0], dtype=q.dtype))


@pytest.mark.parametrize(("n", "n_classes"), [(40, 25), (25, 40)])
@pytest.mark.parametrize("eta", [1.0, 10.0])
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


@pytest.mark.parametrize(("tau", "eta"), SHARP)
def test_a_tolerance_is_reached_in_the_sharp_settings(tau, eta):
    log_p = log_p_of(64, 50, tau, dtype=torch.float32)
    result = transport(log_p, eta, tolerance=1e-4)
    assert result.q.dtype == torch.float32
    assert result.error <= 1e-4 or result.rounds == 2000


def test_equal_and_unreachable_columns_are_served():
    """Each row nearly certain of one of four classes out of eight, thousands of nats ahead."""
    log_p = torch.full((16, 8), -3000.0, dtype=torch.float64)
    log_p[torch.arange(16), torch.arange(16) % 4] = 0.0
    q = sinkhorn(log_p, 1.0, tolerance=1e-9)
    torch.testing.assert_close(q.sum(0), torch.full((8,), 2.0, dtype=q.dtype), atol=1e-8, rtol=0)


@pytest.mark.parametrize("count", [1, 3, 50])
@pytest.mark.parametrize(("tau", "eta"), SHARP)
def test_single_precision_stays_finite_and_close(count, tau, eta):
    log_p = log_p_of(200, 90, tau)
    result = sinkhorn(log_p.float(), eta, rounds=count)
    torch.testing.assert_close(result.sum(1), torch.ones(200))
    torch.testing.assert_close(
        result.double(), sinkhorn(log_p, eta, rounds=count), atol=0.02, rtol=0
    )


def test_half_precision_is_computed_in_single():
    log_p = log_p_of(20, 9, 0.1).to(torch.bfloat16)
    result = sinkhorn(log_p, 5.0, rounds=3)
    assert result.dtype == torch.bfloat16
    expected = sinkhorn(log_p.float(), 5.0, rounds=3)
    torch.testing.assert_close(result, expected.to(torch.bfloat16))


def test_near_potentials_save_rounds():
    log_p = log_p_of(32, 25, 0.05)
    first = transport(log_p, 5.0, tolerance=1e-4)
    moved = log_p + 0.01 * log_p_of(32, 25, 1.0, seed=1)
    cold = transport(moved, 5.0, tolerance=1e-4)
    warm = transport(moved, 5.0, tolerance=1e-4, potentials=first.potentials)
    assert warm.rounds < cold.rounds
    torch.testing.assert_close(warm.q, cold.q, atol=0.01, rtol=0)


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


def test_there_is_no_gradient():
    log_p = log_p_of(6, 4).requires_grad_()
    assert not sinkhorn(log_p, 5.0, rounds=2).requires_grad
    assert not sinkhorn(log_p, 5.0, tolerance=1e-3).requires_grad


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


def test_three_rounds_unless_told_otherwise():
    log_p = log_p_of(20, 8, 0.1)
    assert torch.equal(sinkhorn(log_p, 5.0), sinkhorn(log_p, 5.0, rounds=3))
    assert LabelSettings().rounds == 3


@pytest.mark.parametrize("shape", SHAPES)
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


@pytest.mark.parametrize("rounds", [0, -2])
@pytest.mark.parametrize("tolerance", [None, 1e-3])
def test_no_rounds_are_refused(rounds, tolerance):
    with pytest.raises(ValueError, match=rf"sinkhorn: {rounds} rounds"):
        sinkhorn(log_p_of(4, 3), 5.0, rounds, tolerance)
