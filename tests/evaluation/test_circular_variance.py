"""How far set elements lie apart: the papers' formulas, and the ends of their range."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from manymatch.evaluation.sets.elements import circular_variance, log_circular_variance


def _vectors(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return made.to(dtype)


def _naive_variance(vectors: Tensor, power: int = 1) -> list[float]:
    values = []
    for elements in vectors.tolist():
        mean = [0.0] * len(elements[0])
        for element in elements:
            length = math.sqrt(sum(x * x for x in element))
            mean = [m + x / length / len(elements) for m, x in zip(mean, element, strict=True)]
        values.append(1 - math.sqrt(sum(m * m for m in mean)) ** power)
    return values


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("elements", [1, 2, 4])
def test_circular_variance_is_the_formula(elements: int, squared: bool) -> None:
    """1 - ||mean|| of DivE, 1 - ||mean||^2 of MaxMatch."""
    vectors = 3 * _vectors(5, elements, 7)
    expected = torch.tensor(_naive_variance(vectors, 1 + squared), dtype=torch.float64)
    variances = circular_variance(vectors, squared=squared)
    torch.testing.assert_close(variances, expected, atol=1e-9, rtol=0)
    variance = log_circular_variance(vectors, squared=squared)
    if elements > 1:
        assert variance == pytest.approx(math.log(expected.mean().item()), abs=1e-9)


def test_circular_variance_of_equal_and_of_opposite_elements() -> None:
    one = _vectors(4, 1, 6, dtype=torch.float32)
    assert circular_variance(one.expand(4, 3, 6)).max() < 1e-12
    assert -40 < log_circular_variance(one.expand(4, 3, 6)) < -20  # a number, for JSON
    opposite = torch.cat([one, -5 * one], 1)
    torch.testing.assert_close(circular_variance(opposite), torch.ones(4, dtype=torch.float64))
    right_angle = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    assert circular_variance(right_angle).item() == pytest.approx(1 - math.sqrt(0.5), abs=1e-12)
