"""The Mahalanobis distance equals a naive loop, values and gradients, and rounds as it says."""

from __future__ import annotations

import pytest
import torch
from same_gradients import assert_same
from torch.nn.functional import normalize

from manymatch.similarities.gaussians import mahalanobis

SHAPES = [(3, 5, 6), (1, 4, 3), (4, 1, 1), (2, 2, 8)]


def gaussians(q, c, size, dtype=torch.float64, seed=0):
    """Means on the sphere, log variances of several sizes, and candidates on the sphere."""
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance, points = (
        torch.randn(n, size, generator=generator, dtype=dtype) for n in (q, q, c)
    )
    return normalize(mean, dim=1), log_variance, normalize(points, dim=1)


def naive(mean, log_variance, points):
    rows = []
    for mu, spread in zip(mean, log_variance, strict=True):
        row = [
            sum((point[d] - mu[d]) ** 2 / torch.exp(spread[d]) for d in range(len(mu)))
            for point in points
        ]
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize(("q", "c", "size"), SHAPES)
def test_equals_the_naive_loop(q, c, size):
    inputs = [part.requires_grad_() for part in gaussians(q, c, size)]
    expected, result = naive(*inputs), mahalanobis(*inputs)
    assert result.shape == (q, c)
    assert_same(result, expected, inputs)


def test_gradient_by_differences():
    assert torch.autograd.gradcheck(
        mahalanobis, [part.requires_grad_() for part in gaussians(2, 3, 4)]
    )


def test_a_query_is_at_no_distance_from_its_own_mean():
    mean, log_variance, _ = gaussians(50, 1, 64, torch.float32)
    own = mahalanobis(mean, log_variance, mean).diagonal()
    assert (own >= 0).all() and (own < 1e-3).all()


@pytest.mark.parametrize("variance", [-5.0, 0.0, 3.0])
def test_rounding_in_single_precision_is_that_of_the_terms(variance):
    mean, log_variance, points = gaussians(40, 60, 256, torch.float32)
    mean = normalize(points[:40] + 0.3 * mean, dim=1)  # near, so that the terms cancel
    log_variance = log_variance + variance
    wide = [part.double() for part in (mean, log_variance, points)]
    terms = (-wide[1]).exp() @ wide[2].square().T
    error = (mahalanobis(mean, log_variance, points) - mahalanobis(*wide)).abs()
    assert (error <= 2e-6 * terms).all()


def test_half_precision_is_compared_in_single_precision():
    parts = [part.bfloat16() for part in gaussians(3, 4, 64, torch.float32)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = mahalanobis(*parts)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, mahalanobis(*(part.float() for part in parts)))
