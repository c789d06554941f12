"""The settings of a text encoder, and the encoder and the vocabulary that they describe."""

from __future__ import annotations

from typing import Literal

from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.networks.encoders.bert import BertEncoder, Tuning
from manymatch.networks.encoders.bert_weights import bert_folder
from manymatch.networks.encoders.text import BertTextEncoder, Local, TextEncoder, TextPooling
from manymatch.networks.encoders.word_vectors import WordVectors, word_embedding
from manymatch.networks.encoders.words import WordEncoder
from manymatch.networks.layers.gru import Directions


class BertSettings(Strict):
    """The BERT that reads captions, and how it learns; see `BertEncoder`."""

    weights: str = "minilm"
    """`minilm` (MiniLM-L6, 384-d, a package), a folder, or a name on the Hugging Face hub."""
    tuning: Tuning = "full"
    prefix_length: Count = 24


class TextSettings(Strict):
    """How a caption's words become local features and a global feature of size D.

    `gru`: word vectors and a bi-GRU. The local features are the word vectors (DivE, PCME) or the
    GRU's states (SwAMP), `pooling` says what the global feature is.
    `bert`: one layer over the last hidden states. All of them are local features; the global
    feature is their maximum.
    """

    encoder: Literal["gru", "bert"] = "gru"
    word_vectors: WordVectors = "glove"
    word_size: Count = 300
    """Size of learned word vectors and of the vectors in `glove_file`."""
    glove_file: str | None = None
    """A text file of GloVe vectors; null: the vectors of the package, of 50 dimensions."""
    local: Local = "vectors"
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


def text_encoder(
    settings: TextSettings, vocabulary: AnyVocabulary, size: int
) -> TextEncoder | BertTextEncoder:
    """The encoder that `settings` describe, for captions numbered by `vocabulary`, D = `size`."""
    if settings.encoder == "bert":
        return BertTextEncoder(bert_encoder(settings.bert, vocabulary), size, settings.dropout)
    words = word_embedding(
        settings.word_vectors, vocabulary, settings.word_size, settings.glove_file
    )
    reader = WordEncoder(words, size, settings.directions, settings.dropout)
    return TextEncoder(reader, settings.local, size, settings.pooling, settings.state_dropout)


def text_vocabulary(settings: TextSettings, words: Vocabulary) -> AnyVocabulary:
    """The vocabulary that numbers captions for the encoder: `words`, or a BERT's wordpieces."""
    return bert_vocabulary(settings.bert) if settings.encoder == "bert" else words


def bert_encoder(settings: BertSettings, vocabulary: AnyVocabulary) -> BertEncoder:
    """The BERT that reads captions numbered by `vocabulary`."""
    return BertEncoder(vocabulary, settings.tuning, settings.prefix_length)


def bert_vocabulary(settings: BertSettings) -> WordPieces:
    """The wordpieces of the BERT that `settings` name; they lead to its network and weights."""
    return WordPieces.from_folder(bert_folder(settings.weights))
