"""Text encoders: from word ids to local features and a global feature."""

from typing import Literal

from pydantic import model_validator
from torch import Tensor, nn

from manymatch.batch.padding import PaddedSequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.bert import BertSettings, token_encoder
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.encoders.hub_text import HubTextSettings
from manymatch.networks.encoders.word_vectors import WordVectors, word_embedding
from manymatch.networks.layers.dropout import Dropout
from manymatch.networks.layers.gru import BiGRU, Directions, Read
from manymatch.networks.layers.linear import glorot_linear
from manymatch.networks.pooling.global_pooling import MaxPooling, PoolingName, pooling, zeroed

TextPooling = Literal["final"] | PoolingName


class TextSettings(Strict):
    """How a caption's words become local features and a global feature of size D.

    `gru`: word vectors and a bi-GRU. The local features are the word vectors (DivE, PCME) or the
    GRU's states (SwAMP), `pooling` says what the global feature is.
    `bert`: one layer over the last hidden states. All of them are local features; the global
    feature is their maximum. `hf`: the same over any text model of transformers.
    """

    encoder: Literal["gru", "bert", "hf"] = "gru"
    word_vectors: WordVectors = "glove"
    word_size: Count = 300
    """Size of learned word vectors and of the vectors in `glove_file`."""
    glove_file: str | None = None
    """A text file of GloVe vectors; null: the vectors of the package, of 50 dimensions."""
    local: Literal["vectors", "states"] = "vectors"
    directions: Directions = "average"
    """The GRU's directions: averaged, each of size D, or concatenated, each of size D / 2."""
    pooling: TextPooling = "final"
    """`gru`: the global feature is the GRU's final state, or a pooling of the states of all
    words."""
    dropout: Probability = 0.0
    """Dropout of the elements of word vectors or of BERT's hidden states."""
    state_dropout: Probability = 0.0
    """`gru`: dropout of the elements of the GRU's states and of its final state."""
    bert: BertSettings = BertSettings()
    hf: HubTextSettings | None = None
    """`hf`: the text model."""

    @model_validator(mode="after")
    def _names_a_model(self) -> "TextSettings":
        if (self.encoder == "hf") != (self.hf is not None):
            raise ValueError("encoder: hf and the group 'hf' with a model belong together")
        return self

    def vocabulary(self, words: Vocabulary) -> AnyVocabulary:
        """The vocabulary that numbers captions for the encoder: `words`, or a model's pieces."""
        if self.hf is not None:
            return self.hf.vocabulary()
        return self.bert.vocabulary() if self.encoder == "bert" else words


def text_encoder(
    settings: TextSettings, vocabulary: AnyVocabulary, size: int
) -> "TextEncoder | PieceTextEncoder":
    """The encoder that `settings` describe, for captions numbered by `vocabulary`, D = `size`."""
    kind = TextEncoder if settings.encoder == "gru" else PieceTextEncoder
    return kind(settings, vocabulary, size)


class TextEncoder(nn.Module):
    """Word vectors and bi-GRU. `local_size` is W, the size of local features."""

    def __init__(self, settings: TextSettings, vocabulary: AnyVocabulary, size: int) -> None:
        super().__init__()
        words = word_embedding(
            settings.word_vectors, vocabulary, settings.word_size, settings.glove_file
        )
        self.words = WordEncoder(words, size, settings.directions, settings.dropout)
        self.pool = None if settings.pooling == "final" else pooling(settings.pooling)
        self.dropout = Dropout(settings.state_dropout)
        self.local = settings.local
        self.local_size = size if self.local == "states" else self.words.width

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


class PieceTextEncoder(nn.Module):
    """A text model and one layer over its hidden states.

    The pieces and those before and behind them are all local features. `local_size` is D.
    """

    def __init__(self, settings: TextSettings, vocabulary: AnyVocabulary, size: int) -> None:
        super().__init__()
        reads = token_encoder(settings.hf, settings.bert, vocabulary)
        self.local_size, self._name = size, reads.name
        self.add_module(reads.name, reads)
        layer = glorot_linear(reads.width, size)
        self.project = nn.Sequential(Dropout(settings.dropout), layer)
        self.pool = MaxPooling()

    def forward(self, words: Tensor, padding: PaddedSequences) -> Encoding:
        """`words (m, L)` piece ids -> local `(m, E + L, D)`, globals `(m, D)`."""
        reads = getattr(self, self._name)
        states, real = reads(words, padding.mask)
        local = zeroed(self.project(states), real)
        return Encoding(
            local, padding.longer(reads.ends), lambda: self.pool(local, real).squeeze(1)
        )


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
