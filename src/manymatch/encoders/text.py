"""Text encoders by name: from word ids to local and global features."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.encoders.bert import BertEncoder, BertSettings, bert_vocabulary
from manymatch.encoders.encoding import Encoding
from manymatch.encoders.word_vectors import WordVectors, word_embedding
from manymatch.encoders.words import WordEncoder
from manymatch.layers.glorot import glorot_linear
from manymatch.layers.gru import Directions
from manymatch.pooling.masked import MaxPooling
from manymatch.text.vocabulary import Vocabulary
from manymatch.text.wordpieces import AnyVocabulary


class TextSettings(Strict):
    """How a caption's words become local features and a global one of size D.

    `gru`: word vectors and a bi-GRU. Local are the word vectors (DivE, PCME) or the GRU's states
    (SwAMP), global is the GRU's final state.
    `bert`: one layer over the last hidden states. Local are all of them, global their maximum.
    """

    encoder: Literal["gru", "bert"] = "gru"
    word_vectors: WordVectors = "glove"
    word_size: Count = 300
    """Of learned word vectors and those of `glove_file`."""
    glove_file: str | None = None
    """A text file of GloVe vectors; null: the package's, of 50 dimensions."""
    local: Literal["vectors", "states"] = "vectors"
    directions: Directions = "average"
    """Of the GRU: averaged, each of size D, or concatenated, each of size D / 2."""
    dropout: Probability = 0.0
    """Of the elements of word vectors or BERT's hidden states."""
    state_dropout: Probability = 0.0
    """`gru`: of the elements of the GRU's states and of its final state."""
    bert: BertSettings = BertSettings()


class TextEncoder(nn.Module):
    """Word vectors and bi-GRU. `local_size` is W, the size of local features."""

    def __init__(
        self,
        words: WordEncoder,
        local: Literal["vectors", "states"],
        size: int,
        state_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.local = words, local
        self.dropout = nn.Dropout(state_dropout)
        self.local_size = size if local == "states" else words.width

    def forward(self, words: Tensor, mask: Tensor) -> Encoding:
        """`words (m, L)` ids, `mask (m, L)` -> local `(m, L, W)`, globals `(m, D)`."""
        vectors = self.words.vectors(words)
        read = self.words.gru(vectors, mask)
        local = self.dropout(read.states) if self.local == "states" else vectors
        return Encoding(local, mask, self.dropout(read.final))


class BertTextEncoder(nn.Module):
    """A BERT and one layer over its hidden states. `local_size` is D.

    [CLS], [SEP] and the wordpieces are all local features.
    """

    def __init__(self, bert: BertEncoder, size: int, dropout: float) -> None:
        super().__init__()
        self.bert, self.local_size = bert, size
        self.project = nn.Sequential(nn.Dropout(dropout), glorot_linear(bert.width, size))
        self.pool = MaxPooling()

    def forward(self, words: Tensor, mask: Tensor) -> Encoding:
        """`words (m, L)` piece ids, `mask (m, L)` -> local `(m, 2 + L, D)`, globals `(m, D)`."""
        states, real = self.bert(words, mask)
        local = self.project(states).masked_fill(~real[:, :, None], 0.0)
        return Encoding(local, real, self.pool(local, real)[:, 0])


def text_encoder(
    settings: TextSettings, vocabulary: AnyVocabulary, size: int
) -> TextEncoder | BertTextEncoder:
    """The encoder that `settings` name, for captions numbered by `vocabulary`, with D = `size`."""
    if settings.encoder == "bert":
        return BertTextEncoder(BertEncoder(settings.bert, vocabulary), size, settings.dropout)
    words = word_embedding(
        settings.word_vectors, vocabulary, settings.word_size, settings.glove_file
    )
    reader = WordEncoder(words, size, settings.directions, settings.dropout)
    return TextEncoder(reader, settings.local, size, settings.state_dropout)


def text_vocabulary(settings: TextSettings, words: Vocabulary) -> AnyVocabulary:
    """What captions must be numbered by for this encoder: `words`, or a BERT's wordpieces."""
    return bert_vocabulary(settings.bert) if settings.encoder == "bert" else words
