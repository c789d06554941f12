"""One modality of a set method: an encoder, and the module that predicts a set from it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from manymatch.methods.base import Embeddings
from manymatch.pooling.slot_attention import SlotAttention
from manymatch.similarities.pairs import full_precision


class SetTower(nn.Module):
    """Encoder `(rows, mask) -> Encoding`, then a set module's `predict` -> `Embeddings`.

    Without `global_feature` the set module predicts from the local features alone. The global
    feature is still a part of the embeddings, for the losses that compare with it.
    """

    def __init__(self, encoder: nn.Module, sets: nn.Module, global_feature: bool) -> None:
        super().__init__()
        self.encoder: Any = encoder
        self.sets: Any = sets
        self.global_feature = global_feature

    def forward(self, rows: Tensor, mask: Tensor) -> Embeddings:
        """Features `(n, R, F)` or word ids `(n, R)`, and their mask `(n, R)` -> n sets."""
        local, mask, globals_ = self.encoder(rows, mask)
        sets = self.sets.predict(local, mask, globals_ if self.global_feature else None)
        return Embeddings(
            vectors=functional.normalize(full_precision(sets.vectors), dim=2),
            globals=globals_,
            slots=sets.slots,
            attention=None if self.training else sets.attention,
        )

    def passes(self, rows: Tensor, mask: Tensor) -> Tensor | None:
        """Attention maps `(T, n, K, R)` of slot attention's passes; None for other modules."""
        if not isinstance(self.sets, SlotAttention):
            return None
        local, mask, _ = self.encoder(rows, mask)
        return self.sets.attend(local, mask)[1]
