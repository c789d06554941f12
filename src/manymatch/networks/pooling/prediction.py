"""The prediction of a set module: K vectors for a sample, their slots and their attention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from manymatch.networks.pooling.masked import Mask

Given = Tensor | None


class Sets(NamedTuple):
    """The set of each sample.

    `vectors (n, K, D)` are the elements, not L2-normalised. `slots (n, K, D)` are the elements
    before the sample's global vector is added, for diversity losses. `attention (n, K, R)` holds
    the weight of each input in each element: rows sum to 1 over the real inputs and are 0 on
    padding.
    """

    vectors: Tensor
    slots: Tensor
    attention: Tensor


class SetModule(nn.Module, ABC):
    """A module that predicts a set of vectors from local features and a global vector."""

    def predict(
        self,
        local: Tensor,
        mask: Mask = None,
        globals: Tensor | None = None,
        boxes: Tensor | None = None,
    ) -> Sets:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)`, `boxes (n, R, 4)` -> `Sets`.

        Every sample has at least one real input. Without a `mask` all inputs are real. Without
        `globals` nothing is added to the slots. The `boxes` say where the inputs lie in the image
        (x1 y1 x2 y2 in 0..1), for modules that code the place.
        """
        return self._sets(local, mask, globals, boxes)

    @abstractmethod
    def _sets(self, local: Tensor, mask: Mask, globals: Given, boxes: Given) -> Sets:
        """`predict` of the module."""

    def forward(
        self,
        local: Tensor,
        mask: Mask = None,
        globals: Tensor | None = None,
        boxes: Tensor | None = None,
    ) -> Tensor:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)`, `boxes (n, R, 4)` -> the vectors
        `(n, K, D)` of `predict`."""
        return self.predict(local, mask, globals, boxes).vectors


class GlobalResidual(nn.Module):
    """DivE's output: `LN(slots) + LN(global)`, the same global vector for every slot."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.slot_norm, self.global_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, slots: Tensor, globals: Tensor | None, attention: Tensor) -> Sets:
        slots = self.slot_norm(slots)
        if globals is None:
            return Sets(slots, slots, attention)
        return Sets(slots + self.global_norm(globals)[:, None], slots, attention)


def feed_forward(size: int, dropout: float) -> nn.Sequential:
    """The MLP of a transformer block: a hidden layer of `4 size`, GELU and dropout."""
    return nn.Sequential(
        nn.Linear(size, 4 * size), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * size, size)
    )
