"""PCME's loss equals a naive loop, values and gradients, and is exact for sure pairs."""

from __future__ import annotations

import math

import pytest
import torch

from manymatch.losses.probabilistic import log_mean_probability, soft_contrastive

SHAPES = [(3, 5, 4), (1, 2, 1), (2, 1, 9)]


def case(n, m, samples, scale=2.0):
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(n, m, samples, generator=generator, dtype=torch.float64)
    match = torch.arange(n)[:, None] == torch.arange(m) * n // m
    return logits.requires_grad_(), match


def naive(logits, match):
    n, m, samples = logits.shape
    total = logits.sum() * 0
    for i in range(n):
        for j in range(m):
            p = sum(1 / (1 + torch.exp(-z)) for z in logits[i, j]) / samples
            total = total - torch.log(p if match[i, j] else 1 - p)
    return total / (n * m)


@pytest.mark.parametrize(("n", "m", "samples"), SHAPES)
def test_equals_the_naive_loop(n, m, samples):
    logits, match = case(n, m, samples)
    result, expected = soft_contrastive(logits, match), naive(logits, match)
    assert result.shape == ()
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)
    gradients = [torch.autograd.grad(loss, [logits])[0] for loss in (result, expected)]
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=0)


def test_gradient_by_differences():
    logits, match = case(2, 3, 2)
    assert torch.autograd.gradcheck(lambda z: soft_contrastive(z, match), [logits])


@pytest.mark.parametrize("logit", [-300.0, 300.0])
def test_a_sure_mistake_costs_its_logit(logit):
    logits = torch.full((1, 1, 4), logit, requires_grad=True)
    loss = soft_contrastive(logits, torch.tensor([[logit < 0]]))
    torch.testing.assert_close(loss, torch.tensor(300.0))
    loss.backward()
    torch.testing.assert_close(logits.grad, torch.full((1, 1, 4), math.copysign(0.25, logit)))


def test_log_mean_probability():
    logits = torch.tensor([[0.0, math.log(3.0)], [-800.0, -800.0]], dtype=torch.float64)
    expected = torch.tensor([math.log((1 / 2 + 3 / 4) / 2), -800.0], dtype=torch.float64)
    torch.testing.assert_close(log_mean_probability(logits), expected)
