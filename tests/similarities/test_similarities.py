"""Every similarity equals a naive loop over its equation, values and gradients."""

from __future__ import annotations

import math

import pytest
import torch
from same_gradients import assert_same
from scipy.optimize import linear_sum_assignment
from torch.nn.functional import normalize

from manymatch.similarities import (
    chamfer,
    cosine,
    match_probability,
    max_match,
    mil,
    smooth_chamfer,
    top_match,
)


def naive_cosine(x, y):
    return sum(a @ b for a in x for b in y) / (len(x) * len(y))


def naive_mil(x, y):
    return max(a @ b for a in x for b in y)


def naive_chamfer(x, y):
    forth = sum(max(a @ b for b in y) for a in x) / len(x)
    back = sum(max(a @ b for a in x) for b in y) / len(y)
    return forth / 2 + back / 2


def naive_smooth_chamfer(x, y, alpha=16.0):
    forth = sum(torch.log(sum(torch.exp(alpha * (a @ b)) for b in y)) for a in x)
    back = sum(torch.log(sum(torch.exp(alpha * (a @ b)) for a in x)) for b in y)
    return forth / (2 * alpha * len(x)) + back / (2 * alpha * len(y))


def probability(x, y):
    return match_probability(x, y, 7.0, -2.0)


def naive_probability(x, y):
    chances = [1 / (1 + torch.exp(-(7 * (a @ b) - 2))) for a in x for b in y]
    return sum(chances) / len(chances)


def naive_max_match(x, y):
    smaller, larger = (x, y) if len(x) <= len(y) else (y, x)
    cosines = [[(a @ b).item() for b in larger] for a in smaller]
    pairs = zip(*linear_sum_assignment(cosines, maximize=True), strict=True)
    terms = [torch.exp(smaller[k] @ larger[pi]) - 1 for k, pi in pairs]
    return sum(terms) / len(terms)


def naive_top_match(x, y):
    best = sorted((a @ b for a in x for b in y), reverse=True)[: min(len(x), len(y))]
    return sum(torch.exp(value) - 1 for value in best) / len(best)


PAIRS = [
    (cosine, naive_cosine),
    (mil, naive_mil),
    (chamfer, naive_chamfer),
    (smooth_chamfer, naive_smooth_chamfer),
    (probability, naive_probability),
    (max_match, naive_max_match),
    (top_match, naive_top_match),
]
SHAPES = [
    *[(3, 4, 5, 4), (2, 1, 3, 1), (1, 3, 1, 2), (4, 2, 1, 5), (1, 4, 3, 4)],
    *[(2, 1, 3, 4), (2, 3, 3, 5), (3, 5, 2, 3), (2, 8, 2, 8), (2, 9, 2, 10)],
]


def unit(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@pytest.mark.parametrize(("similarity", "naive"), PAIRS, ids=lambda f: f.__name__)
def test_equals_the_naive_loop(similarity, naive):
    for n, k, m, size in SHAPES:
        images = unit(n, k, 6).requires_grad_()
        texts = unit(m, size, 6, seed=1).requires_grad_()
        expected = torch.stack([torch.stack([naive(x, y) for y in texts]) for x in images])
        assert_same(similarity(images, texts), expected, [images, texts])
        with torch.no_grad():
            torch.testing.assert_close(similarity(images, texts), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize(("similarity", "naive"), PAIRS, ids=lambda f: f.__name__)
def test_opposite_sets_too(similarity, naive):
    image = unit(1, 3, 5)
    expected = naive(image[0], -image[0])
    torch.testing.assert_close(similarity(image, -image)[0, 0], expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("similarity", [cosine, mil, chamfer, smooth_chamfer])
def test_single_vectors_give_the_cosine_also_when_it_is_negative(similarity):
    image = unit(1, 1, 8)
    torch.testing.assert_close(
        similarity(image, -image), torch.tensor([[-1.0]], dtype=torch.float64), atol=1e-12, rtol=0
    )


@pytest.mark.parametrize("alpha", [1.0, 16.0, 64.0])
def test_smooth_chamfer_stays_within_its_distance_to_chamfer(alpha):
    images, texts = unit(3, 4, 6), unit(5, 2, 6, seed=1)
    excess = smooth_chamfer(images, texts, alpha) - chamfer(images, texts)
    assert (excess >= 0).all()
    assert (excess <= (math.log(4) + math.log(2)) / (2 * alpha) + 1e-12).all()


@pytest.mark.parametrize("similarity", [function for function, _ in PAIRS])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_embeddings_are_compared_in_single_precision(similarity, dtype):
    images, texts = unit(3, 2, 64).to(dtype), unit(4, 2, 64, seed=1).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = similarity(images, texts)
        learning = similarity(images.requires_grad_(), texts)
    assert result.dtype == learning.dtype == torch.float32
    torch.testing.assert_close(result, similarity(images.detach().float(), texts.float()))
    torch.testing.assert_close(learning.detach(), result)
    assert torch.autograd.grad(learning.sum(), images)[0].dtype == dtype


@pytest.mark.parametrize("similarity", [function for function, _ in PAIRS])
def test_a_pair_scores_the_same_alone_and_among_others(similarity):
    images, texts = unit(5, 3, 8).float(), unit(7, 4, 8, seed=1).float()
    for learning in (False, True):
        images.requires_grad_(learning)
        alone = similarity(images[2:3], texts[4:5])
        torch.testing.assert_close(alone, similarity(images, texts)[2:3, 4:5])


@pytest.mark.parametrize("similarity", [function for function, _ in PAIRS])
@pytest.mark.parametrize("learning", [False, True])
def test_nan_spreads_to_every_score_of_its_set(similarity, learning):
    images = unit(3, 2, 8).float().requires_grad_(learning)
    for element in range(3):
        texts = unit(4, 3, 8, seed=1).float()
        texts[1, element] = torch.nan
        scores = similarity(images, texts)
        assert scores[:, 1].isnan().all()
        assert scores[:, [0, 2, 3]].isfinite().all()


@pytest.mark.parametrize("similarity", [function for function, _ in PAIRS])
def test_no_sets_give_no_scores(similarity):
    assert similarity(unit(3, 2, 8), unit(4, 2, 8)[:0]).shape == (3, 0)
    assert similarity(unit(3, 2, 8)[:0].requires_grad_(), unit(4, 2, 8)).shape == (0, 4)


def test_what_match_probability_learns_gets_its_gradient():
    scale, shift = torch.tensor(7.0).requires_grad_(), torch.tensor(-2.0).requires_grad_()
    images, texts = unit(2, 3, 5).float(), unit(3, 2, 5, seed=1).float()
    assert torch.autograd.gradcheck(
        lambda a, b: match_probability(images.double(), texts.double(), a, b),
        (scale.double(), shift.double()),
    )
    match_probability(images, texts, scale, shift).sum().backward()
    assert scale.grad is not None and shift.grad is not None
