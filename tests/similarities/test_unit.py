"""Vectors of length 1, and their gradients."""

import torch
from torch.nn import functional

from manymatch.similarities.vectors import unit


def test_values_and_gradients_are_those_of_normalize():
    vectors = torch.randn(5, 3, 4, dtype=torch.float64)
    vectors[1, 2] = 0.0
    vectors[2, 1] = 1e-14
    vectors.requires_grad_()
    weights = torch.randn(5, 3, 4, dtype=torch.float64)
    expected = functional.normalize(vectors, dim=2)
    assert torch.equal(unit(vectors), expected)
    gradients = [
        torch.autograd.grad((result * weights).sum(), vectors)[0]
        for result in (unit(vectors), expected)
    ]
    real = torch.ones(5, 3, dtype=torch.bool)
    real[2, 1] = False  # shorter than any length that counts: the gradient has no meaning
    torch.testing.assert_close(*(gradient[real] for gradient in gradients))
    assert unit(vectors.to(torch.bfloat16)).dtype == torch.float32
