"""Vectors of word2vec for the vocabulary, which are not trained."""

from __future__ import annotations

from pathlib import Path

import torch

from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.networks.encoders.word2vec_file import read_word2vec
from manymatch.networks.encoders.word_vectors import PAD, WordTable
from manymatch.util.errors import ConfigError


def fixed_embedding(vocabulary: AnyVocabulary, size: int, file: str | None) -> WordTable:
    """A table of word2vec's vectors that is not trained.

    The vectors of words that are not in `file` are zero. The vectors of a trained model's words are
    zero too, because its weights follow.

    Args:
        vocabulary: the words.
        size: of a vector.
        file: word2vec's binary file.

    Raises:
        ConfigError: the file is not named, missing or unusable, or the vocabulary has wordpieces.
    """
    if isinstance(vocabulary, WordPieces):
        raise ConfigError("word vectors need words, but the captions are numbered by wordpieces")
    vectors = torch.zeros(len(vocabulary), size)
    if not vocabulary.trained:
        if not file:
            raise ConfigError("word_vectors: word2vec needs its binary file. Set word2vec_file.")
        rows = {word: row for row, word in enumerate(vocabulary.words)}
        for word, vector in read_word2vec(Path(file), rows, size).items():
            vectors[rows[word]] = torch.from_numpy(vector)
    vectors[PAD] = 0.0
    return WordTable.from_pretrained(vectors, freeze=True, padding_idx=PAD)
