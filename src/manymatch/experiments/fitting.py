"""The training loop of the experiments that train small networks of their own."""

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from manymatch.losses.pseudo_labels import SwappedLabels

Losses = Callable[[int], Iterable[dict[str, Tensor]]]
"""`losses(epoch)` yields the terms of each batch; epochs count from 0."""


def fit(
    networks: nn.Module,
    labels: SwappedLabels | None,
    losses: Losses,
    validate: Callable[[], float],
    *,
    epochs: int,
    lr: float,
) -> tuple[int, float]:
    """Train `networks` and `labels` with Adam on the sums of the losses' terms. The networks get
    the weights of the epoch with the best validation: that epoch (from 1) and its validation."""
    parts = nn.ModuleList([networks] if labels is None else [networks, labels])
    parts.to(next(networks.parameters()).device)
    optimizer = torch.optim.Adam(parts.parameters(), lr=lr, fused=True)
    best, weights, best_epoch = -1.0, networks.state_dict(), 0
    for epoch in range(epochs):
        for terms in losses(epoch):
            optimizer.zero_grad()
            torch.stack(list(terms.values())).sum().backward()
            optimizer.step()
        value = validate()
        if value > best:
            best, weights, best_epoch = value, copy.deepcopy(networks.state_dict()), epoch + 1
    networks.load_state_dict(weights)
    return best_epoch, best
