"""The gated embedding unit against a loop over its formula."""

from __future__ import annotations

import math

import pytest
import torch

from manymatch.methods.swamp_video import GatedEmbedding


def naive(unit: GatedEmbedding, row: list[float]) -> list[float]:
    """One vector, a number at a time."""
    weights = {name: value.tolist() for name, value in unit.state_dict().items()}
    project = zip(weights["project.weight"], weights["project.bias"], strict=True)
    y = [sum(w * x for w, x in zip(line, row, strict=True)) + b for line, b in project]
    gated = []
    for value, line, b in zip(y, weights["gate.weight"], weights["gate.bias"], strict=True):
        inner = sum(w * x for w, x in zip(line, y, strict=True)) + b
        gated.append(value / (1 + math.exp(-inner)))
    length = math.sqrt(sum(value**2 for value in gated))
    return [value / length for value in gated]


@pytest.fixture
def unit() -> GatedEmbedding:
    torch.manual_seed(0)
    return GatedEmbedding(5, 4).double()


@pytest.mark.parametrize("count", [1, 3])
def test_values_are_those_of_the_formula(unit: GatedEmbedding, count: int) -> None:
    vectors = torch.randn(count, 5, dtype=torch.float64)
    expected = torch.tensor([naive(unit, row) for row in vectors.tolist()], dtype=torch.float64)
    torch.testing.assert_close(unit(vectors), expected, rtol=0, atol=1e-9)


def test_gradients_are_those_of_the_formula(unit: GatedEmbedding) -> None:
    """By central differences of the loop, for every parameter and the inputs."""
    vectors = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    outer = torch.randn(2, 4, dtype=torch.float64)
    (unit(vectors) * outer).sum().backward()

    def value() -> float:
        rows = [naive(unit, row) for row in vectors.tolist()]
        return float((torch.tensor(rows, dtype=torch.float64) * outer).sum())

    for tensor in (vectors, *unit.parameters()):
        flat, gradient = tensor.data.view(-1), tensor.grad.view(-1)
        for position in range(len(flat)):
            kept = float(flat[position])
            slopes = []
            for width in (1e-3, 2e-3):
                flat[position] = kept + width
                above = value()
                flat[position] = kept - width
                slopes.append((above - value()) / (2 * width))
                flat[position] = kept
            # Richardson's combination: the error falls with the fourth power of the width.
            slope = (4 * slopes[0] - slopes[1]) / 3
            assert abs(slope - float(gradient[position])) < 1e-9


def test_no_vector_is_an_empty_result(unit: GatedEmbedding) -> None:
    assert unit(torch.zeros(0, 5, dtype=torch.float64)).shape == (0, 4)


def test_half_precision_ends_on_the_unit_sphere() -> None:
    unit = GatedEmbedding(5, 4).bfloat16()
    result = unit(torch.randn(3, 5).bfloat16())
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.norm(dim=1), torch.ones(3))
