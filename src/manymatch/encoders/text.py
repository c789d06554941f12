"""Text encoders by name: from word ids to local and global features."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from manymatch.config.recipe import Count, Probability
from manymatch.config.strict import Strict
from manymatch.datasets.vocabulary import Vocabulary
from manymatch.encoders.encoding import Encoding
from manymatch.encoders.word_vectors import WordVectors, word_embedding
from manymatch.encoders.words import WordEncoder
from manymatch.layers.gru import Directions


class TextSettings(Strict):
    """How a caption's words become local features and a global one of size D.

    `gru`: word vectors and a bi-GRU. Local are the word vectors (DivE, PCME) or the GRU's states
    (SwAMP), global is the GRU's final state.
    """

    encoder: Literal["gru"] = "gru"
    word_vectors: WordVectors = "glove"
    word_size: Count = 300
    """Of learned word vectors; GloVe's have their own size."""
    local: Literal["vectors", "states"] = "vectors"
    directions: Directions = "average"
    """Of the GRU: averaged, each of size D, or concatenated, each of size D / 2."""
    dropout: Probability = 0.0
    """Of the word vectors' elements."""


class TextEncoder(nn.Module):
    """Word vectors and bi-GRU. `local_size` is W, the size of local features."""

    def __init__(self, words: WordEncoder, local: Literal["vectors", "states"], size: int) -> None:
        super().__init__()
        self.words, self.local = words, local
        self.local_size = size if local == "states" else words.width

    def forward(self, words: Tensor, mask: Tensor) -> Encoding:
        """`words (m, L)` ids, `mask (m, L)` -> local `(m, L, W)`, globals `(m, D)`."""
        vectors = self.words.vectors(words)
        read = self.words.gru(vectors, mask)
        return Encoding(read.states if self.local == "states" else vectors, mask, read.final)


def text_encoder(settings: TextSettings, vocabulary: Vocabulary, size: int) -> TextEncoder:
    """The encoder that `settings` name, for the words of `vocabulary`, with D = `size`."""
    words = word_embedding(settings.word_vectors, vocabulary, settings.word_size)
    reader = WordEncoder(words, size, settings.directions, settings.dropout)
    return TextEncoder(reader, settings.local, size)
