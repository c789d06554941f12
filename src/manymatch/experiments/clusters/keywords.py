"""The nouns and verbs of captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from manymatch.scene_graphs.parser import MAX_CHARACTERS
from manymatch.system.progress import track

_KINDS = {"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs"}


class Words(NamedTuple):
    """The lemmas of one caption, without repetition."""

    nouns: list[str]
    verbs: list[str]


def words_of(model: Language, captions: Sequence[str]) -> list[Words]:
    """The words of each caption. Auxiliaries do not count as verbs; names count as nouns."""
    texts = (" ".join(caption[:MAX_CHARACTERS].split()) for caption in captions)
    # Lemmas and parts of speech do not depend on the parse, which would be most of the work.
    docs = model.pipe(texts, disable=["parser"])
    return [_words(doc) for doc in track(docs, "words of captions", len(captions), quiet=True)]


def _words(doc: Doc) -> Words:
    lemmas: dict[str, dict[str, None]] = {"nouns": {}, "verbs": {}}
    for token in doc:
        if token.pos_ in _KINDS and token.is_alpha:
            lemmas[_KINDS[token.pos_]][token.lemma_.lower()] = None
    return Words(list(lemmas["nouns"]), list(lemmas["verbs"]))


def most_frequent(captions: Iterable[Iterable[str]], count: int) -> list[tuple[str, int]]:
    """The `count` words that most captions have, with their number of captions. Words of equal
    frequency are in alphabetical order."""
    frequency = Counter(word for words in captions for word in words)
    return sorted(frequency.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
