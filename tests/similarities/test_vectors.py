"""Vectors of length 1, and distances, equal naive loops, values and gradients."""

import pytest
import torch
from same_gradients import assert_same, normal
from torch.nn.functional import normalize

from manymatch.similarities.gaussians import closed_form_distance, mahalanobis, pair_distances
from manymatch.similarities.vectors import unit


@pytest.mark.parametrize(
    ("vectors", "eps"),
    [
        (normal(2, 3, 4), 1e-6),
        (torch.zeros(1, 4), 1e-14),
        (torch.tensor([[0.6, 0.0, -0.8, 0.0]]) * 1e-13, 1e-14),
        (torch.empty(0, 4), 1e-6),
    ],
)
def test_unit_vectors(vectors, eps):
    """Also shorter than the shortest length, where the divisor is a constant."""
    vectors = vectors.detach().double().requires_grad_()
    result = unit(vectors)
    torch.testing.assert_close(result, normalize(vectors, dim=-1))
    assert torch.autograd.gradcheck(unit, [vectors], eps=eps)
    (gradient,) = torch.autograd.grad(result.square().sum(), vectors, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def gaussians(q, c, size, dtype=torch.float64):
    """Means on the sphere, log variances of several sizes, and candidates on the sphere."""
    mean, log_variance, points = (
        normal(n, size, seed=seed, dtype=dtype).detach() for seed, n in enumerate((q, q, c))
    )
    return normalize(mean, dim=1), log_variance, normalize(points, dim=1)


def naive_mahalanobis(mean, log_variance, points):
    rows = []
    for mu, spread in zip(mean, log_variance, strict=True):
        row = [
            sum((point[d] - mu[d]) ** 2 / torch.exp(spread[d]) for d in range(len(mu)))
            for point in points
        ]
        rows.append(torch.stack(row))
    return torch.stack(rows)


@pytest.mark.parametrize(("q", "c", "size"), [(3, 5, 6), (4, 1, 1)])
def test_mahalanobis(q, c, size):
    inputs = [part.requires_grad_() for part in gaussians(q, c, size)]
    result = mahalanobis(*inputs)
    assert result.shape == (q, c)
    assert_same(result, naive_mahalanobis(*inputs), inputs)
    assert torch.autograd.gradcheck(mahalanobis, inputs)


def test_a_query_is_at_no_distance_from_its_own_mean():
    mean, log_variance, _ = gaussians(50, 1, 64, torch.float32)
    own = mahalanobis(mean, log_variance, mean).diagonal()
    assert (own >= 0).all() and (own < 1e-3).all()


@pytest.mark.parametrize("variance", [-5.0, 3.0])
def test_rounding_in_single_precision_is_that_of_the_terms(variance):
    mean, log_variance, points = gaussians(40, 60, 256, torch.float32)
    mean = normalize(points[:40] + 0.3 * mean, dim=1)  # near, so that the terms cancel
    log_variance = log_variance + variance
    wide = [part.double() for part in (mean, log_variance, points)]
    terms = (-wide[1]).exp() @ wide[2].square().T
    error = (mahalanobis(mean, log_variance, points) - mahalanobis(*wide)).abs()
    assert (error <= 2e-6 * terms).all()


@pytest.mark.parametrize("shape", [(3, 4, 5, 2), (1, 1, 2, 1), (9, 4, 10, 3)], ids=str)
def test_pair_distances(shape):
    """The last shape is large enough to expand the square."""
    n, k, m, length = shape
    images, texts = normal(n, k, 6), normal(m, length, 6, seed=1)
    result = pair_distances(images, texts)
    assert result.shape == (n, m, k, length)
    rows = [(x - y).square().sum().sqrt() for i in images for t in texts for x in i for y in t]
    assert_same(result, torch.stack(rows).view(result.shape), [images, texts])


@pytest.mark.parametrize(("n", "m", "size"), [(3, 5, 6), (4, 1, 1)])
def test_closed_form_distance(n, m, size):
    """Also where means have any length: nothing assumes unit vectors."""
    inputs = [normal(rows, size, seed=seed) for seed, rows in enumerate((n, n, m, m))]
    rows = [
        sum((mu[d] - nu[d]) ** 2 + torch.exp(s[d]) + torch.exp(t[d]) for d in range(size))
        for mu, s in zip(*inputs[:2], strict=True)
        for nu, t in zip(*inputs[2:], strict=True)
    ]
    result = closed_form_distance(*inputs)
    assert_same(result, torch.stack(rows).view(n, m), inputs)
    assert torch.autograd.gradcheck(closed_form_distance, inputs)


@pytest.mark.parametrize("count", [2, 40])
def test_elements_that_coincide_get_no_gradient(count):
    images = normal(count, 2, 6)
    pair_distances(images, images.detach().clone()).sum().backward()
    assert images.grad.isfinite().all()


@pytest.mark.parametrize(
    ("distance", "parts"),
    [
        (mahalanobis, gaussians(3, 4, 64, torch.float32)),
        (
            closed_form_distance,
            gaussians(3, 1, 64, torch.float32)[:2] + gaussians(4, 1, 64, torch.float32)[:2],
        ),
        (pair_distances, (normal(3, 2, 6).detach(), normal(4, 2, 6, seed=1).detach())),
    ],
)
def test_half_precision_is_compared_in_single_precision(distance, parts):
    half = [part.bfloat16() for part in parts]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = distance(*half)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, distance(*(part.float() for part in half)))
