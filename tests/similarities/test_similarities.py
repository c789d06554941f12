"""Every similarity equals a naive loop over its equation, values and gradients."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from manymatch.similarities.chamfer import chamfer
from manymatch.similarities.cosine import cosine
from manymatch.similarities.mil import mil
from manymatch.similarities.smooth_chamfer import smooth_chamfer


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


PAIRS = [
    (cosine, naive_cosine),
    (mil, naive_mil),
    (chamfer, naive_chamfer),
    (smooth_chamfer, naive_smooth_chamfer),
]
SHAPES = [(3, 4, 5, 4), (2, 1, 3, 1), (1, 3, 1, 2), (4, 2, 1, 5)]


def unit(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(*shape, generator=generator, dtype=torch.float64), dim=-1)


@pytest.mark.parametrize(("similarity", "naive"), PAIRS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("n", "k", "m", "size"), SHAPES)
def test_equals_the_naive_loop(similarity, naive, n, k, m, size):
    images = unit(n, k, 6).requires_grad_()
    texts = unit(m, size, 6, seed=1).requires_grad_()
    expected = torch.stack([torch.stack([naive(x, y) for y in texts]) for x in images])
    weights = unit(n, m, seed=2)
    wanted = torch.autograd.grad((expected * weights).sum(), [images, texts])
    found = similarity(images, texts)
    assert found.shape == (n, m)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    gradients = torch.autograd.grad((found * weights).sum(), [images, texts])
    torch.testing.assert_close(gradients, wanted, atol=1e-9, rtol=0)


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


def test_half_precision_embeddings_are_compared_in_single_precision():
    images, texts = unit(3, 2, 64).bfloat16(), unit(4, 2, 64, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = mil(images, texts)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, mil(images.float(), texts.float()))
