"""Linear layers that are called several times."""

import pytest
import torch
from torch import nn

from manymatch.networks.layers.linear import repeated


@pytest.mark.parametrize("bias", [True, False])
def test_repeated_layers_have_autograds_results_and_gradients(bias):
    layers = [nn.Linear(3, 3, bias=bias).double() for _ in range(2)]
    parameters = [part for layer in layers for part in layer.parameters()]
    inputs = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    gradients = []
    for start, (one, other) in ((inputs, layers), repeated(inputs, *layers)):
        result = one(other(one(start)).tanh()) + one(start)
        gradients.append(torch.autograd.grad(result.exp().sum(), [inputs, *parameters]))
    for expected, gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_frozen_weights_of_a_repeated_layer_have_no_gradient(frozen):
    layer, inputs = nn.Linear(3, 3), torch.randn(2, 3)
    getattr(layer, frozen).requires_grad_(False)
    start, (call,) = repeated(inputs, layer)
    call(call(start)).sum().backward()
    assert {name for name, part in layer.named_parameters() if part.grad is None} == {frozen}


def test_autocast_reaches_a_repeated_layer():
    layer, inputs = nn.Linear(3, 3), torch.randn(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        start, (call,) = repeated(inputs, layer)
        result = call(start)
        assert torch.equal(result, layer(inputs))
    result.float().sum().backward()
    assert layer.weight.grad.dtype == torch.float32
