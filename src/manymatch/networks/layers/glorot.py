"""Linear layers with the papers' initial weights, and several linear layers at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
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
