"""Vectors of word2vec for the vocabulary, which are not trained, and word2vec's binary files."""

from __future__ import annotations

import mmap
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch

from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.networks.encoders.word_vectors import PAD, WordTable
from manymatch.util.errors import ConfigError
from manymatch.util.regular_file import open_regular


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


_LONGEST = 2**12
"""The most bytes of a word; some words are whole phrases."""


def read_word2vec(path: Path, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """The vectors `(size,)` float32 of the `words` that the file contains, by word.

    The file is a line "COUNT SIZE", then COUNT times a word, a space, and the bytes of its floats.

    Raises:
        ConfigError: the file is missing or malformed, or its vectors do not have `size` numbers.
    """
    encoded = {word.encode("utf-8"): word for word in words}
    try:
        with (
            open_regular(path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _read(data, encoded, size)
    except OSError as error:
        raise ConfigError(f"{path}: word2vec's vectors cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def _read(data: mmap.mmap, encoded: dict[bytes, str], size: int) -> dict[str, np.ndarray]:
    at = data.find(b"\n", 0, _LONGEST) + 1
    head = data[:at].split()
    if len(head) != 2 or not all(part.isdigit() for part in head):
        raise ValueError("does not begin with two numbers. Set a binary file of word2vec.")
    count, file_size = map(int, head)
    if file_size != size:
        raise ValueError(f"{file_size} numbers for a word, but word_size is {size}. Set word_size.")
    vectors: dict[str, np.ndarray] = {}
    for number in range(1, count + 1):
        space = data.find(b" ", at, at + _LONGEST)
        end = space + 1 + 4 * size
        if space < 0 or end > len(data):
            raise ValueError(
                f"word {number} of {count}: truncated or damaged. Download the file again."
            )
        word = encoded.get(data[at:space].lstrip(b"\n"))
        if word is not None:
            # A word may stand twice; the first is the more frequent one, as in GloVe's files.
            vectors.setdefault(word, _vector(data[space + 1 : end], number))
        at = end
    return vectors


def _vector(values: bytes, number: int) -> np.ndarray:
    vector = np.frombuffer(values, "<f4").astype(np.float32)
    if not np.isfinite(vector).all():
        raise ValueError(f"word {number}: numbers are not finite. Download the file again.")
    return vector
