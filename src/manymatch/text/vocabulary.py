"""Captions to words, words to ids."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from manymatch.system import files
from manymatch.system.errors import DataError

# GloVe's vectors were made with the Penn Treebank's clitics ("'s", "n't") and with hyphenated words
# left whole ("t-shirt", "snow-covered"), so the same pieces are made here. Punctuation is dropped.
_CLITIC = r"'(?:s|m|d|re|ve|ll)\b"
_WORD = re.compile(
    rf"""
      \d+(?:[.,]\d+)+                                     # 1,000 and 2.5
    | [^\W_]+?(?=n't\b) | n't\b | {_CLITIC}               # do|n't, man|'s
    | [^\W_]+ (?: (?!{_CLITIC}) ['-] [^\W_]+ )*           # o'clock, merry-go-round
    """,
    re.VERBOSE,
)
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2010\u2011", "'''--")


def tokenize(text: str) -> list[str]:
    """The lower-case words of `text`: "A man's t-shirt ." -> ["a", "man", "'s", "t-shirt"]."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return _WORD.findall(plain.lower())


class Vocabulary:
    """Words and their ids; unknown words share the id `UNK`.

    Words are ordered by falling count, equal counts by the alphabet, after the special ones.
    `trained`: they are those of a trained model, whose weights bring their vectors along.
    """

    PAD, UNK, MASK = 0, 1, 2
    SPECIAL = ("<pad>", "<unk>", "<mask>")

    def __init__(self, words: Sequence[str], trained: bool = False) -> None:
        """`words`: all of them in the order of their ids, the special ones first."""
        self.words = tuple(words)
        self.trained = trained
        self._ids = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def from_captions(cls, captions: Iterable[str], minimum_count: int = 1) -> Vocabulary:
        """The words that `captions` (of the training split) hold at least `minimum_count` times."""
        counts = Counter(chain.from_iterable(map(tokenize, captions)))
        kept = [item for item in counts.items() if item[1] >= minimum_count]
        kept.sort(key=lambda item: (-item[1], item[0]))
        return cls([*cls.SPECIAL, *(word for word, _ in kept)])

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read `{"words": [...]}`; anything else is a `DataError`."""
        return cls.from_json(read_json(path), path)

    @classmethod
    def from_json(cls, value: Any, path: Path, trained: bool = False) -> Vocabulary:
        """The same from what `read_json` found at `path`."""
        words = value.get("words") if isinstance(value, dict) else None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{path}: expected a list 'words'; run the stage 'captions' again")
        if tuple(words[:3]) != cls.SPECIAL or len(set(words)) != len(words):
            raise DataError(
                f"{path}: words must start with {', '.join(cls.SPECIAL)} and differ from one "
                "another; run the stage 'captions' again"
            )
        return cls(words, trained)

    def save(self, path: Path) -> None:
        """Write the JSON that `load` reads, whole or not at all."""
        files.write_json(path, {"words": list(self.words)})

    @property
    def ordinary(self) -> Sequence[int]:
        """The ids that a random word is drawn from: all but the special ones."""
        return range(len(self.SPECIAL), len(self.words))

    def encode(self, text: str) -> list[int]:
        """The ids of the text's words; none if it has none."""
        return self.ids(tokenize(text))

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word."""
        return [self._ids.get(word, self.UNK) for word in words]

    def __len__(self) -> int:
        return len(self.words)


def read_json(path: Path) -> Any:
    """What a vocabulary's file holds; `DataError` if it is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as a vocabulary: {error}") from None
