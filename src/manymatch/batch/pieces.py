"""The pieces of words that a text model reads: captions to ids, and the ids of each word."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from string import punctuation
from typing import Annotated, Any, Literal

from pydantic import Field
from tokenizers import Tokenizer

from manymatch.batch.vocabulary import UNSPACED
from manymatch.config.strict import Strict
from manymatch.util.errors import DataError, first_line
from manymatch.util.files import write_json

_MOST_PIECES = 2**22
_RESERVED = re.compile(r"\[.+\]|<.+>")
"""Pieces that do not occur in texts: special and reserved pieces, such as "[unused7]"."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
_PUNCTUATION = str.maketrans("", "", punctuation)
_MOST_GROWTH = 64
"""How many times longer the replacements of a tokeniser may make a text."""
_PROBE = "a \u2603 \u9ce5 \U000e0001"
"""A text with signs that few tokenisers know."""
_Id = Annotated[int, Field(ge=0, lt=_MOST_PIECES)]


@contextmanager
def failing_as(kind: type[Exception], what: str) -> Iterator[None]:
    """A failure of the library `tokenizers` in the block is an error of this `kind`, in one line.

    The library raises no narrower class than Exception. A panic of its code is not even that.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise kind(f"{what} ({first_line(error)})") from None


def make_sure(tokenizer: Tokenizer) -> None:
    """Let a stranger's tokeniser give the same pieces for a text each time. Replacements that make
    a text very much longer are a `ValueError`."""
    if getattr(tokenizer.model, "dropout", None) is not None:  # BPE leaves out merges at random
        tokenizer.model.dropout = None
    for part in (tokenizer.normalizer, tokenizer.decoder):
        waiting, growth = [json.loads(part.__getstate__())] if part else [], 1
        while waiting:
            step = waiting.pop()
            waiting += step.get("normalizers", []) + step.get("decoders", [])
            if step.get("type") == "Replace":
                growth *= max(1, len(step["content"]))
        if growth > _MOST_GROWTH:
            raise ValueError(f"its replacements make a text more than {_MOST_GROWTH} times longer")


class Special(Strict):
    """The special pieces of a tokeniser by id, and how a text is prepared for the text model."""

    first: tuple[_Id, ...] = ()
    """The pieces before each text, such as [CLS]."""
    last: tuple[_Id, ...] = ()
    """The pieces behind each text, such as [SEP]."""
    pad: _Id = 0
    unknown: _Id | None = None
    mask: _Id | None = None
    length: Annotated[int, Field(ge=3, le=2**20)] = 512
    """The most pieces of a text, the first and last ones included."""
    filled: Literal["left", "right"] | None = None
    """Where each text is padded to `length`, if the padding is read, as by SigLIP."""
    cleaning: Literal["none", "lower", "plain"] = "none"
    """`lower`: texts become lower case. `plain`: they also lose punctuation and repeated spaces."""
    prompt: str = "{}"
    """Each text takes the place of "{}"."""


class Pieces:
    """The pieces of a tokeniser and their ids, usable in place of a `Vocabulary`.

    Attributes:
        special: the special pieces.
        UNK, MASK: the ids of an unknown and of a masked word. MASK is None where the tokeniser has
            no mask. UNK is any piece where an unknown word has no piece of its own.
        ordinary: the ids from which random words are drawn.
        words: all pieces in the order of their ids.
        network: the configuration of the text model, from which its network is built.
        pretrained: the folder of the weights, or None if a trained model contains the weights.
    """

    def __init__(
        self,
        tokenizer: str,
        network: dict[str, Any],
        pretrained: Path | None = None,
        special: Special | None = None,
    ) -> None:
        """`tokenizer` is JSON of the library `tokenizers`, and `special` None for a BERT. It is a
        `ValueError` if there is no such tokeniser, or if it lacks special pieces."""
        self._json, self.network, self.pretrained = tokenizer, network, pretrained
        with failing_as(ValueError, "not a tokeniser"):
            self._tokenizer = Tokenizer.from_str(tokenizer)
        make_sure(self._tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        with failing_as(ValueError, "it cannot read every text"):
            self._tokenizer.encode(_PROBE, add_special_tokens=False)
        self._tokenizer.encode_special_tokens = True  # "[SEP]" in a caption is no special piece
        pieces = self._tokenizer.get_vocab()
        if max(pieces.values(), default=_MOST_PIECES) >= _MOST_PIECES:
            raise ValueError(f"no pieces, or more than {_MOST_PIECES:,}")
        self.special = special = special or self._special(pieces)
        words = [""] * (max(pieces.values()) + 1)
        for piece, number in pieces.items():
            words[number] = piece
        self.words = tuple(words)
        named = {special.pad, special.unknown, special.mask, *special.first, *special.last}
        self.ordinary: Sequence[int] = sorted(
            number
            for piece, number in pieces.items()
            if number not in named and not _RESERVED.fullmatch(piece)
        )
        if max(filter(None, named), default=0) >= len(words) or not self.ordinary:
            raise ValueError("a special piece is missing, or there are no other pieces")
        self.MASK, self.UNK = special.mask, special.unknown or 0
        if special.unknown in (None, special.pad, *special.first, *special.last):  # as CLIP's
            self.UNK = self.ordinary[0]
        self._most = special.length - len(special.first) - len(special.last)

    def _special(self, pieces: dict[str, int]) -> Special:
        raise NotImplementedError

    def __reduce__(self) -> tuple:
        return type(self), (self._json, self.network, self.pretrained, self.special)

    def save(self, path: Path) -> None:
        """Write the JSON file that `load_vocabulary` reads, completely or not at all."""
        special = self.special.model_dump(mode="json")
        pieces = json.loads(self._json)
        write_json(path, {"pieces": pieces, "special": special, "network": self.network})

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's pieces, cut to the network's length."""
        ids: list[int] = self._encoded(self._prepared(text)).ids
        return ids[: self._most]

    def encode_words(self, text: str) -> tuple[list[int], list[int]]:
        """The ids of `encode`, and the number of ids of each word.

        A piece continues a word if the character before the piece is of the same word: neither
        space nor punctuation, nor of a script without spaces.
        """
        text = self._prepared(text)
        encoded, sizes, latest = self._encoded(text), list[int](), -1
        for start, _ in encoded.offsets[: self._most]:
            while start < len(text) and text[start].isspace():
                start += 1
            # Pieces of one character, such as bytes, have the same place.
            if start > latest and (start in (0, len(text)) or _parts(text[start - 1 : start + 1])):
                sizes.append(0)
            if not sizes:
                sizes.append(0)
            sizes[-1] += 1
            latest = start
        return encoded.ids[: self._most], sizes

    def is_cut(self, text: str) -> bool:
        """Whether `encode` leaves out the end of `text`."""
        # A piece has at least one byte of the text, unless the tokeniser rewrites characters.
        if text.isascii() and len(text) + len(self.special.prompt) <= self._most:
            return False
        return len(self._encoded(self._prepared(text)).ids) > self._most

    def unknown(self, text: str) -> list[str]:
        """The words of `text` without pieces, each once; the whole text if it has no words."""
        words = self._words(text)
        unknown = dict.fromkeys(word for number, word in words if number == self.special.unknown)
        return list(unknown) if words else [text.strip()]

    def knows(self, text: str) -> bool:
        """Whether a word of `text` has pieces."""
        return any(number != self.special.unknown for number, _ in self._words(text))

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The pieces with these ids, for a reader."""
        ending = getattr(self._tokenizer.model, "end_of_word_suffix", None) or " "
        shown = (self._tokenizer.decode([number], skip_special_tokens=False) for number in ids)
        return [piece.removesuffix(ending).strip() for piece in shown]

    def _words(self, text: str) -> list[tuple[int, str]]:
        """The ids and places in `text` of the pieces with a letter or digit."""
        text = self._clean(text)
        encoded = self._encoded(text)
        pieces = zip(encoded.ids, encoded.offsets, strict=True)
        words = [(number, text[slice(*place)]) for number, place in pieces]
        return [(number, word) for number, word in words if any(map(str.isalnum, word))]

    def _prepared(self, text: str) -> str:
        """`text` in the prompt, as the tokeniser reads the text."""
        return self._clean(self.special.prompt.replace("{}", text))

    def _clean(self, text: str) -> str:
        cleaning = self.special.cleaning
        if cleaning != "none":
            text = text.lower()
        return " ".join(text.translate(_PUNCTUATION).split()) if cleaning == "plain" else text

    def _encoded(self, text: str) -> Any:
        with failing_as(DataError, f"the model's tokeniser cannot read the text {text!a:.60}"):
            return self._tokenizer.encode(text, add_special_tokens=False)

    def __len__(self) -> int:
        return len(self.words)


@lru_cache(maxsize=65_536)
def _parts(neighbours: str) -> bool:
    """Whether two neighbouring characters are of different words."""
    return any(
        not sign.isalnum()
        if sign.isascii()
        else sign.isspace() or unicodedata.category(sign)[0] == "P" or _UNSPACED.match(sign)
        for sign in neighbours
    )
