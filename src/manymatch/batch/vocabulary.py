"""Captions to words, and words to ids."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from manymatch.util.errors import DataError
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.seal import check_if_sealed

_REMEDY = "Run the stage 'captions' again"

# GloVe's vectors use the Penn Treebank's clitics ("'s", "n't") and keep hyphenated words whole
# ("t-shirt", "snow-covered"), so the same pieces are made here. Punctuation is dropped.
_CLITIC = r"'(?:s|m|d|re|ve|ll)\b"
_PATTERN = rf"""
      \d+(?:[.,]\d+)+                                     # 1,000 and 2.5
    | [^\W_]+?(?=n't\b) | n't\b | {_CLITIC}               # do|n't, man|'s
    | LETTERS (?: (?!{_CLITIC}) ['-] LETTERS )*           # o'clock, merry-go-round
    """
_WORD = re.compile(_PATTERN.replace("LETTERS", r"[^\W_]+"), re.VERBOSE)
# ASCII text without these joints has the same words by a pattern that is several times as fast.
_JOINT, _PLAIN_WORD = re.compile(r"['-]|\d[.,]\d"), re.compile(r"[^\W_]+")
# Vowel signs, as in Hindi, belong to their word. Scripts without spaces (Thai, Lao, Burmese, Khmer,
# Chinese, Japanese) give a piece for each letter.
_SIGNS = "".join(s for s in map(chr, range(0x300, 0xFE00)) if unicodedata.category(s) in "MnMc")
UNSPACED = r"\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
_SPACED = rf"[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]|[{_SIGNS}])*"
_ANY_WORD = re.compile(
    rf"(?![{UNSPACED}])(?:{_PATTERN.replace('LETTERS', _SPACED)}) | [{UNSPACED}][{_SIGNS}]*",
    re.VERBOSE,
)
_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2010\u2011", "'''--")


def tokenize(text: str) -> list[str]:
    """Return the lower-case words: "A man's t-shirt ." -> ["a", "man", "'s", "t-shirt"]."""
    if text.isascii():
        return (_WORD if _JOINT.search(text) else _PLAIN_WORD).findall(text.lower())
    return _ANY_WORD.findall(unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).lower())


class Vocabulary:
    """Words and their ids; unknown words share the id `UNK`.

    The special words come first. Other words are sorted by decreasing count, then alphabetically.
    `trained`: the vocabulary belongs to a trained model, whose weights include the word vectors.
    `ordinary`: the ids of the training captions' words, from which random words are drawn.
    """

    PAD, UNK, MASK = 0, 1, 2
    SPECIAL = ("<pad>", "<unk>", "<mask>")

    def __init__(self, words: Sequence[str], trained: bool = False) -> None:
        """`words`: all words in the order of their ids, the special words first."""
        self.words = tuple(words)
        self.trained = trained
        self.ordinary: Sequence[int] = range(len(self.SPECIAL), len(self.words))
        self._ids = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def from_captions(cls, captions: Iterable[str], minimum_count: int = 1) -> "Vocabulary":
        """Build the vocabulary of words that occur at least `minimum_count` times in `captions`."""
        counts = Counter(chain.from_iterable(map(tokenize, captions)))
        frequent = [item for item in counts.items() if item[1] >= minimum_count]
        frequent.sort(key=lambda item: (-item[1], item[0]))
        return cls([*cls.SPECIAL, *(word for word, _ in frequent)])

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read the file `{"words": [...]}`; a `DataError` if it is missing or has other content."""
        check_if_sealed(path, _REMEDY)
        try:
            return cls.from_json(read_object(path), path)
        except DataError as error:
            raise DataError(f"{error}. {_REMEDY}") from None

    @classmethod
    def from_json(cls, value: dict[str, Any], path: Path, trained: bool = False) -> "Vocabulary":
        """Build the vocabulary from the content `value` of the file `path`; see `load`."""
        words = value.get("words")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{path}: expected a list 'words'")
        if tuple(words[:3]) != cls.SPECIAL or len(set(words)) != len(words):
            raise DataError(
                f"{path}: words must start with {', '.join(cls.SPECIAL)} and be distinct"
            )
        return cls(words, trained)

    def save(self, path: Path) -> None:
        """Write the JSON file that `load` reads, completely or not at all."""
        write_json(path, {"words": list(self.words)})

    def extended(self, captions: Iterable[str]) -> "Vocabulary":
        """The vocabulary with the other words of `captions` behind its own, for word vectors that
        are not learned. Random words are not drawn from the other words."""
        others = set(chain.from_iterable(map(tokenize, captions))).difference(self.words)
        extended = Vocabulary([*self.words, *sorted(others)], self.trained)
        extended.ordinary = self.ordinary
        return extended

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words in `text`."""
        return self.ids(tokenize(text))

    def ids(self, words: Iterable[str]) -> list[int]:
        """Return the id of each word."""
        return [self._ids.get(word, self.UNK) for word in words]

    def unknown(self, text: str) -> list[str]:
        """The words of `text` that are not in the vocabulary, each once; the whole text if it has
        no words."""
        words = tokenize(text)
        unknown = dict.fromkeys(word for word in words if word not in self._ids)
        return list(unknown) if words else [text.strip()]

    def knows(self, text: str) -> bool:
        """Whether a word of `text` is in the vocabulary."""
        return any(word in self._ids for word in tokenize(text))

    def __len__(self) -> int:
        return len(self.words)
