"""Linear layers: initial weights, several layers at once, full precision, and repeated calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


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
    """`layer(inputs)` in the type of the layer's weights, with and without autocast."""
    kind = next((weight.dtype for weight in layer.parameters()), inputs.dtype)
    with torch.autocast(inputs.device.type, enabled=False):
        result: Tensor = layer(inputs.to(kind))
    return result


_Calls = list[tuple[Tensor, Tensor]]
"""The rows that the layer has read in each call, and the gradients of its output."""


class RepeatedLinear:
    """`layer`, for several calls within one forward pass.

    Autograd makes a product for the weights' gradient in each call, and adds all of them. Here one
    product over the rows of all calls follows when the backward pass has left the first call. A GPU
    starts fewer kernels; on a CPU joining the rows takes as long as the sums.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self._calls: _Calls = []
        self._weights = _Weights.apply(self._calls, layer.weight, layer.bias)

    def __call__(self, inputs: Tensor) -> Tensor:
        """`inputs (..., W)` -> `(..., D)`."""
        result: Tensor = _Call.apply(self._calls, inputs, *self._weights)
        return result


class _Weights(torch.autograd.Function):
    """The weights, in autocast's type; `_Call` leaves their gradient to this backward pass."""

    @staticmethod
    def forward(ctx: Any, calls: _Calls, weight: Tensor, bias: Tensor | None) -> tuple:
        ctx.calls = calls
        ctx.set_materialize_grads(False)
        kind, device = weight.dtype, weight.device.type
        if torch.is_autocast_enabled(device):
            kind = torch.get_autocast_dtype(device)
        weights = [None if part is None else part.to(kind) for part in (weight, bias)]
        return tuple(part if part is None else part.view_as(part) for part in weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *_: None) -> tuple:
        rows, gradients = (torch.cat(parts) for parts in zip(*ctx.calls, strict=True))
        ctx.calls.clear()
        bias_gradient = gradients.sum(0) if ctx.needs_input_grad[2] else None
        return None, gradients.T @ rows, bias_gradient


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, calls: _Calls, inputs: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        inputs = inputs.to(weight.dtype)
        ctx.calls = calls
        ctx.save_for_backward(inputs, weight)
        return functional.linear(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        inputs, weight = ctx.saved_tensors
        ctx.calls.append((inputs.flatten(0, -2), gradient.flatten(0, -2)))
        return None, gradient @ weight, None, None
