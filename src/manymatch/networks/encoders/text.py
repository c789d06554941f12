"""Text encoders: from word ids to local features and a global feature."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from manymatch.batch.padding import PaddedSequences
from manymatch.networks.encoders.bert import ENDS, BertEncoder
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.encoders.words import WordEncoder
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.linear import glorot_linear
from manymatch.networks.pooling.global_pooling import MaxPooling, PoolingName, pooling
from manymatch.networks.pooling.masked import zeroed

Local = Literal["vectors", "states"]
TextPooling = Literal["final"] | PoolingName


class TextEncoder(nn.Module):
    """Word vectors and bi-GRU.

    Args:
        words: the word encoder.
        local: whether the local features are the word vectors or the GRU's states.
        size: D of the word encoder.
        global_pooling: the global feature: the GRU's final state ("final"), or a pooling of its
            states.
        state_dropout: dropout of the GRU's states and of the global feature.

    Attributes:
        local_size: W, the size of local features.
    """

    def __init__(
        self,
        words: WordEncoder,
        local: Local,
        size: int,
        global_pooling: TextPooling = "final",
        state_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.local = words, local
        self.pool = None if global_pooling == "final" else pooling(global_pooling)
        self.dropout = Dropout(state_dropout)
        self.local_size = size if local == "states" else words.width

    def forward(self, words: Tensor, padding: PaddedSequences) -> Encoding:
        """`words (m, L)` ids -> local `(m, L, W)`, globals `(m, D)`."""
        vectors = self.words.vectors(words)
        read = self.words.gru(vectors, padding.sequences)
        local = self.dropout(read.states) if self.local == "states" else vectors

        def global_features() -> Tensor:
            pool = self.pool
            pooled = read.final if pool is None else pool(read.states, padding).squeeze(1)
            return self.dropout(pooled)

        return Encoding(local, padding, global_features)


class BertTextEncoder(nn.Module):
    """A BERT and one layer over its hidden states.

    [CLS], the wordpieces and [SEP] are all local features. `local_size` is D.
    """

    def __init__(self, bert: BertEncoder, size: int, dropout: float) -> None:
        super().__init__()
        self.bert, self.local_size = bert, size
        self.project = nn.Sequential(Dropout(dropout), glorot_linear(bert.width, size))
        self.pool = MaxPooling()

    def forward(self, words: Tensor, padding: PaddedSequences) -> Encoding:
        """`words (m, L)` piece ids -> local `(m, 2 + L, D)`, globals `(m, D)`."""
        states, real = self.bert(words, padding.mask)
        local = zeroed(self.project(states), real)
        return Encoding(local, padding.longer(ENDS), lambda: self.pool(local, real).squeeze(1))
