"""word2vec's vectors of the vocabulary, fixed."""

from __future__ import annotations

from pathlib import Path

import torch

from manymatch.encoders.word2vec_file import read_word2vec
from manymatch.encoders.word_vectors import PAD, WordTable
from manymatch.system.errors import ConfigError
from manymatch.text.wordpieces import AnyVocabulary, WordPieces


def fixed_embedding(vocabulary: AnyVocabulary, size: int, file: str | None) -> WordTable:
    """A table of word2vec's vectors that is not trained; the words that `file` does not know are
    all zero. A trained model's words start at zero: its weights follow.

    Raises:
        ConfigError: the file is not named, missing or unusable, or the words are wordpieces.
    """
    if isinstance(vocabulary, WordPieces):
        raise ConfigError("word vectors are of words, but the captions are numbered by wordpieces")
    vectors = torch.zeros(len(vocabulary), size)
    if not vocabulary.trained:
        if not file:
            raise ConfigError("word_vectors: word2vec needs its binary file: set word2vec_file")
        places = {word: row for row, word in enumerate(vocabulary.words)}
        for word, vector in read_word2vec(Path(file), places, size).items():
            vectors[places[word]] = torch.from_numpy(vector)
    vectors[PAD] = 0.0
    return WordTable.from_pretrained(vectors, freeze=True, padding_idx=PAD)
