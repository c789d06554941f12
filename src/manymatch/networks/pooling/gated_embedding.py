"""The gated embedding unit of video-text models."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.similarities.vectors import unit


class GatedEmbedding(nn.Module):
    """`y * sigmoid(W y + b)` with `y = linear(x)`, L2-normalised: dimensions gate each other.

    Args:
        width: F, size of the inputs.
        size: D, size of the outputs.

    References:
        Miech, Laptev and Sivic, Learning a Text-Video Embedding from Incomplete and Heterogeneous
        Data, 2018; the unit of HowTo100M and of SwAMP's appendix.
    """

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.project, self.gate = nn.Linear(width, size), nn.Linear(size, size)

    def forward(self, vectors: Tensor) -> Tensor:
        """`(n, F)` -> `(n, D)` of length 1."""
        projected = self.project(vectors)
        gated = projected * self.gate(projected).sigmoid()
        return unit(gated)
