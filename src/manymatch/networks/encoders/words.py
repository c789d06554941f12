"""The word-sequence encoder: word vectors and a bi-GRU."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.batch.padding import PaddedSequences
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.gru import BiGRU, Directions, Read


class WordEncoder(nn.Module):
    """Word vectors, dropout, bi-GRU: a state for each word and the final state.

    Args:
        words: the word vectors, which other encoders may share.
        size: D.
        directions: how the GRU's directions are joined.
        dropout: of the elements of word vectors.
    """

    def __init__(
        self,
        words: nn.Embedding,
        size: int,
        directions: Directions = "average",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words = words
        self.width = words.embedding_dim
        self.dropout = Dropout(dropout)
        self.gru = BiGRU(self.width, size, directions)

    def forward(self, words: Tensor, padding: PaddedSequences) -> Read:
        """`words (m, L)` ids -> states `(m, L, D)`, final `(m, D)`."""
        return self.gru(self.vectors(words), padding.sequences)

    def vectors(self, words: Tensor) -> Tensor:
        """`words (m, L)` ids -> their vectors `(m, L, width)`, zero where padded."""
        return self.dropout(self.words(words))
