"""What a set module predicts: K vectors for a sample, and what they were made from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class Sets(NamedTuple):
    """The set of each sample.

    `vectors (n, K, D)` are the elements, not L2-normalised. `slots (n, K, D)` are what tells the
    elements of a set apart, before the sample's global vector is added: diversity terms look at
    them. `attention (n, K, R)` says how much of each input an element took: rows sum to 1 over
    the real inputs and are 0 on padding.
    """

    vectors: Tensor
    slots: Tensor
    attention: Tensor


class SetModule(nn.Module, ABC):
    """Local features and a global vector to a set of vectors."""

    @abstractmethod
    def predict(
        self, local: Tensor, mask: Tensor | None = None, globals: Tensor | None = None
    ) -> Sets:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)` -> `Sets`.

        Every sample has at least one real input, and without a `mask` all are real; without
        `globals` nothing is added.
        """

    def forward(
        self, local: Tensor, mask: Tensor | None = None, globals: Tensor | None = None
    ) -> Tensor:
        """The `vectors (n, K, D)` of `predict`."""
        return self.predict(local, mask, globals).vectors


class GlobalResidual(nn.Module):
    """DivE's output: `LN(slots) + LN(global)`, each slot with the same global vector."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.slot_norm, self.global_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, slots: Tensor, globals: Tensor | None, attention: Tensor) -> Sets:
        slots = self.slot_norm(slots)
        if globals is None:
            return Sets(slots, slots, attention)
        return Sets(slots + self.global_norm(globals)[:, None], slots, attention)


def feed_forward(size: int, dropout: float) -> nn.Sequential:
    """The MLP of a transformer's block: four times as wide inside, GELU, then dropout."""
    return nn.Sequential(
        nn.Linear(size, 4 * size), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * size, size)
    )
