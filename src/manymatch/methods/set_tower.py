"""One modality of a set method: an encoder, and the module that predicts a set from it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from manymatch.batch.padding import Padding
from manymatch.methods.base import Embeddings
from manymatch.networks.pooling.slot_attention import SlotAttention
from manymatch.similarities.vectors import unit


class SetTower(nn.Module):
    """Encoder `(rows, padding) -> Encoding`, then a set module's `predict` -> `Embeddings`.

    Without `global_feature` the set module predicts from the local features alone. The global
    feature is still a part of the embeddings, for the losses that compare with it.
    """

    def __init__(self, encoder: nn.Module, sets: nn.Module, global_feature: bool) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.sets: Any = sets
        self.global_feature = global_feature

    def forward(self, rows: Tensor, padding: Padding, boxes: Tensor | None = None) -> Embeddings:
        """Features `(n, R, F)` or word ids `(n, R)`, and their padding -> n sets.

        The `boxes (n, R, 4)` say where the local features lie in the image, if known.
        """
        encoded = self.encoder(rows, padding)
        local, padding, globals_ = encoded.local, encoded.padding, encoded.globals()
        sets = self.sets.predict(local, padding, globals_ if self.global_feature else None, boxes)
        return Embeddings(
            vectors=unit(sets.vectors),
            globals=globals_,
            slots=sets.slots,
            attention=None if self.training else sets.attention,
        )

    def passes(self, rows: Tensor, padding: Padding, boxes: Tensor | None = None) -> Tensor | None:
        """Attention maps `(T, n, K, R)` of slot attention's passes; None for other modules."""
        if not isinstance(self.sets, SlotAttention):
            return None
        encoded = self.encoder(rows, padding)
        maps: Tensor = self.sets.attend(encoded.local, encoded.padding, boxes)[1]
        return maps
