"""Linear layers that are called several times."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from manymatch.networks.layers.linear import RepeatedLinear


@pytest.mark.parametrize("bias", [True, False])
def test_a_repeated_layer_has_autograds_results_and_gradients(bias):
    layer = nn.Linear(3, 3, bias=bias).double()
    inputs = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    gradients = []
    for call in (layer, RepeatedLinear(layer)):
        result = call(call(inputs).tanh()) + call(inputs)
        gradients.append(torch.autograd.grad(result.exp().sum(), [inputs, *layer.parameters()]))
    for expected, gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected)


def test_autocast_reaches_a_repeated_layer():
    layer, inputs = nn.Linear(3, 3), torch.randn(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        result = RepeatedLinear(layer)(inputs)
        assert torch.equal(result, layer(inputs))
    result.float().sum().backward()
    assert layer.weight.grad.dtype == torch.float32
