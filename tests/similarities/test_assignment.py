"""Both solvers find what scipy finds, on every pair, whatever the values."""

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from manymatch.similarities.matchings import best_columns, fits, scipy_assignment, subset_assignment

SIZES = [(1, 1), (1, 4), (3, 5), (4, 4), (8, 8)]
LARGE = [(9, 10), (5, 20), (12, 12)]
PAIRS = (3, 2)


def uniform(shape, generator):
    return torch.rand(shape, generator=generator) * 2 - 1


def ties(shape, generator):
    return torch.randint(-2, 3, shape, generator=generator) / 4


def products(shape, generator):
    """Every augmenting path is long: the best column of all rows is the same."""
    n_rows, n_columns = shape[:2]
    rows, columns = torch.arange(1.0, n_rows + 1), torch.arange(1.0, n_columns + 1)
    table = -rows[:, None] * columns / (n_rows * n_columns)
    return table[:, :, None, None].expand(shape)


KINDS = {
    "uniform": uniform,
    "ties": ties,
    "all equal": lambda shape, _: torch.full(shape, 0.3),
    "negative": lambda shape, generator: -torch.rand(shape, generator=generator),
    "nearly equal": lambda shape, generator: 0.5 + 1e-6 * uniform(shape, generator),
    "same rows": lambda shape, generator: uniform((1, *shape[1:]), generator).expand(shape),
    "same columns": lambda shape, generator: uniform((shape[0], 1, *shape[2:]), generator).expand(
        shape
    ),
    "products": products,
}


def check(columns, values, tolerance):
    """One-to-one, and of the sum that scipy reaches."""
    scores = values.double().gather(1, columns[:, None])[:, 0].sum(0)
    for row in range(values.shape[2]):
        for column in range(values.shape[3]):
            of_pair = values[:, :, row, column].double().numpy()
            best = of_pair[linear_sum_assignment(of_pair, maximize=True)].sum()
            assert abs(scores[row, column] - best) <= tolerance, values.shape
            picked = columns[:, row, column].numpy()
            assert len(np.unique(picked)) == len(picked)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_pair_as_scipy(kind):
    for size in (*SIZES, *LARGE):
        values = kind((*size, *PAIRS), torch.Generator().manual_seed(0))
        check(scipy_assignment(values), values, 1e-12)
        check(best_columns(values), values, 3e-8)
        if size in SIZES:
            check(subset_assignment(values), values, 3e-8)


def test_close_sums_of_which_the_greater_is_taken():
    """Differences of one rounding of float32 still count."""
    step = 2.0**-24
    values = torch.tensor([[0.5, 0.75], [0.75, 1.0 - step]])[:, :, None, None]
    assert best_columns(values).flatten().tolist() == [1, 0]
    values[1, 1] = 1.0 + 2 * step
    assert best_columns(values).flatten().tolist() == [0, 1]


def test_which_solver_takes_which_sizes():
    assert all(fits(torch.zeros(*size, 1, 1)) for size in SIZES)
    assert not any(fits(torch.zeros(*size, 1, 1)) for size in LARGE)
    assert not fits(torch.zeros(2, 2, 1, 1, dtype=torch.float64))
    assert not fits(torch.zeros(36, 36, 1, 1))


@pytest.mark.parametrize("solve", [scipy_assignment, subset_assignment])
def test_ties_are_broken_the_same_way_in_any_company(solve):
    values = ties((4, 4, 30, 7), torch.Generator().manual_seed(1))
    together = solve(values)
    torch.testing.assert_close(solve(values[:, :, 11:13, 2:5]), together[:, 11:13, 2:5])
    torch.testing.assert_close(solve(values), together)


@pytest.mark.parametrize("solve", [scipy_assignment, subset_assignment])
@pytest.mark.parametrize("size", [(3, 3), (3, 5)], ids=str)
def test_values_that_are_no_numbers_disturb_no_other_pair(solve, size):
    values = uniform((*size, 4, 2), torch.Generator().manual_seed(2))
    expected = solve(values)
    values[1, 2, 3, 1] = torch.nan
    values[:, :, 2, 1] = torch.inf
    values[:, :2, 3, 0] = -torch.inf
    result = solve(values)
    assert (result >= 0).all() and (result < size[1]).all()
    torch.testing.assert_close(result[:, :2], expected[:, :2])
    torch.testing.assert_close(result[:, :3, 0], expected[:, :3, 0])
    picked = result.flatten(1).T.tolist()
    assert all(len(set(columns)) == 3 for columns in picked)
