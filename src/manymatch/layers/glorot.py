"""Linear layers that start as the papers' do."""

from __future__ import annotations

from torch import nn


def glorot_linear(width: int, size: int) -> nn.Linear:
    """A linear layer with Glorot's uniform weights and a bias of zero (VSE-infinity, GATv2).

    With torch's own start, biases outweigh the small signals of fresh word vectors, and each
    layer makes all inputs more alike: a deep graph encoder then takes epochs to tell them apart.
    """
    layer = nn.Linear(width, size)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
