"""Layers that autocast leaves alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def precise(layer: nn.Module, inputs: Tensor) -> Tensor:
    """`layer(inputs)` in the type of the layer's weights, with and without autocast."""
    kind = next((weight.dtype for weight in layer.parameters()), inputs.dtype)
    with torch.autocast(inputs.device.type, enabled=False):
        result: Tensor = layer(inputs.to(kind))
    return result
