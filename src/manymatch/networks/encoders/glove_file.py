"""GloVe's text files: a word and its numbers in each line, too large for memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from manymatch.util.errors import ConfigError
from manymatch.util.regular_file import open_regular


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
