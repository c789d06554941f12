"""Dropout: the mask, and what stays torch's."""

import pytest
import torch
from torch.nn import functional

from manymatch.layers.dropout import Dropout


@pytest.mark.parametrize("shape", [(3, 5), (300, 301), (0, 4)])
def test_keeps_where_the_next_float64_number_is_below_the_share(shape):
    inputs = torch.randn(shape, requires_grad=True)
    torch.manual_seed(1)
    kept = torch.rand(shape, dtype=torch.float64) < 0.7
    after = torch.rand(1)
    torch.manual_seed(1)
    outputs = Dropout(0.3)(inputs)
    assert torch.equal(torch.rand(1), after)
    assert torch.equal(outputs, inputs * (kept.float() / 0.7))
    outputs.sum().backward()
    assert torch.equal(inputs.grad, kept.float() / 0.7)


def test_columns_are_dropped_as_torch_drops_them():
    inputs = torch.randn(40, 30).T
    torch.manual_seed(2)
    expected = functional.dropout(inputs, 0.5)
    torch.manual_seed(2)
    assert torch.equal(Dropout(0.5)(inputs), expected)


def test_evaluation_changes_and_draws_nothing():
    inputs, state = torch.randn(4), torch.get_rng_state()
    assert torch.equal(Dropout(0.5).eval()(inputs), inputs)
    assert torch.equal(Dropout(0.0)(inputs), inputs)
    assert torch.equal(torch.get_rng_state(), state)
