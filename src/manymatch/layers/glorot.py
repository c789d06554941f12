"""Linear layers with the papers' initial weights."""

from __future__ import annotations

from torch import nn


def glorot_linear(width: int, size: int) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and a bias of zero (VSE-infinity, GATv2).

    With torch's own initial weights, biases outweigh the small signals of fresh word vectors, and
    each layer makes all inputs more similar: a deep graph encoder needs epochs to separate them.
    """
    layer = nn.Linear(width, size)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
