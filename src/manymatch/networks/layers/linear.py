"""Linear layers: initial weights, several layers at once, full precision, and repeated calls."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from manymatch.similarities.vectors import keep_precision


def glorot_linear(width: int, size: int) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and a bias of zero (VSE-infinity, GATv2).

    With torch's own initial weights, biases outweigh the small signals of fresh word vectors, and
    each layer makes all inputs more similar: a deep graph encoder needs epochs to separate them.
    """
    layer = nn.Linear(width, size)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def joint_linear(inputs: Tensor, *layers: nn.Linear) -> tuple[Tensor, ...]:
    """The outputs of `layers` that read the same `inputs (..., W)`; by one matrix product where
    gradients are needed. Without gradients, copying the weights would take longer than it saves."""
    if not torch.is_grad_enabled():
        return tuple(layer(inputs) for layer in layers)
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers])
    outputs: tuple[Tensor, ...] = functional.linear(inputs, weight, bias).split(
        [layer.out_features for layer in layers], -1
    )
    return outputs


def precise(layer: nn.Module, inputs: Tensor) -> Tensor:
    """`layer(inputs)` in the type of `layer.weight`, with and without autocast. A layer without
    this attribute, such as the identity, has the inputs as they are."""
    kind = getattr(layer, "weight", inputs).dtype
    with keep_precision(inputs):
        result: Tensor = layer(inputs.to(kind))
    return result


def repeated(start: Tensor, *layers: nn.Linear) -> tuple[Tensor, list[Callable[[Tensor], Tensor]]]:
    """`start` and the `layers`, for several calls of each layer in one forward pass.

    Autograd makes a product for the weights' gradient in each call, and adds all of them. Here one
    product over the rows of all calls follows when the backward pass, of which there can be one,
    arrives at `start`, on which the inputs of all calls must depend. A GPU starts fewer kernels; on
    a CPU joining the rows takes as long as the sums.
    """
    device, calls = start.device.type, [_Calls([], {}) for _ in layers]
    half = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None

    def call(layer: nn.Linear, calls: _Calls) -> Callable[[Tensor], Tensor]:
        kind = half or layer.weight.dtype
        weight = layer.weight.detach().to(kind)
        bias = None if layer.bias is None else layer.bias.detach().to(kind)

        def linear(inputs: Tensor) -> Tensor:
            inputs, number = inputs.to(kind), len(calls.rows)
            outputs = functional.linear(inputs, weight, bias)
            if outputs.requires_grad:
                calls.rows.append(inputs.detach().flatten(0, -2))
                outputs.register_hook(lambda gradient: calls.gradients.update({number: gradient}))
            return outputs

        return linear

    parameters = [part for layer in layers for part in (layer.weight, layer.bias)]
    return _Start.apply(calls, start, *parameters), list(map(call, layers, calls))


class _Calls(NamedTuple):
    """The rows that a layer has read in each call, and the gradients of its outputs."""

    rows: list[Tensor]
    gradients: dict[int, Tensor]


class _Start(torch.autograd.Function):
    """The input; the backward pass gives the gradients of the layers' weights and biases."""

    @staticmethod
    def forward(ctx: Any, calls: list[_Calls], start: Tensor, *parameters: Tensor | None) -> Tensor:
        ctx.calls = calls
        return start.view_as(start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        needed, result = ctx.needs_input_grad[2:], list[Tensor | None]()
        for number, (rows, gradients) in enumerate(ctx.calls):
            if not gradients:  # the loss does not depend on the layer
                result += [None, None]
                continue
            joined = torch.cat([one.flatten(0, -2) for one in gradients.values()])
            read = torch.cat([rows[call] for call in gradients])
            rows.clear()
            gradients.clear()
            result.append(joined.T @ read if needed[2 * number] else None)
            result.append(joined.sum(0) if needed[2 * number + 1] else None)
        return None, gradient, *result
