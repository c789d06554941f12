"""Distances of set elements equal a naive loop, values and gradients."""

from __future__ import annotations

import pytest
import torch
from same_gradients import assert_same

from manymatch.similarities.gaussians import pair_distances

SHAPES = [(3, 4, 5, 2), (1, 1, 2, 1), (9, 4, 10, 3)]
"""The last is large enough to expand the square."""


def sets(n, k, size=6, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, k, size, generator=generator, dtype=dtype)


@pytest.mark.parametrize(("n", "k", "m", "length"), SHAPES)
def test_equals_the_naive_loop(n, k, m, length):
    images, texts = sets(n, k).requires_grad_(), sets(m, length, seed=1).requires_grad_()
    result = pair_distances(images, texts)
    assert result.shape == (n, m, k, length)
    rows = [(x - y).square().sum().sqrt() for i in images for t in texts for x in i for y in t]
    expected = torch.stack(rows).view(result.shape)
    assert_same(result, expected, [images, texts])


@pytest.mark.parametrize("count", [2, 40])
def test_elements_that_coincide_get_no_gradient(count):
    images = sets(count, 2).requires_grad_()
    pair_distances(images, images.detach().clone()).sum().backward()
    assert images.grad.isfinite().all()


def test_half_precision_is_compared_in_single_precision():
    images, texts = sets(3, 2).bfloat16(), sets(4, 2, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = pair_distances(images, texts)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, pair_distances(images.float(), texts.float()))
