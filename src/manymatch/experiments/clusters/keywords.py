"""The nouns and verbs of captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from manymatch.scene_graphs.parser import MAX_CHARACTERS

_KINDS = {"NOUN": "nouns", "PROPN": "nouns", "VERB": "verbs"}


class Words(NamedTuple):
    """Lemmas of one caption, each once."""

    nouns: list[str]
    verbs: list[str]


def words_of(model: Language, captions: Sequence[str]) -> list[Words]:
    """The words of each caption; auxiliaries are no verbs, names are nouns."""
    texts = (" ".join(caption[:MAX_CHARACTERS].split()) for caption in captions)
    # Lemmas and kinds of words do not depend on the parse, which is most of the work.
    return [_words(doc) for doc in model.pipe(texts, disable=["parser"])]


def _words(doc: Doc) -> Words:
    found: dict[str, dict[str, None]] = {"nouns": {}, "verbs": {}}
    for token in doc:
        if token.pos_ in _KINDS and token.is_alpha:
            found[_KINDS[token.pos_]][token.lemma_.lower()] = None
    return Words(list(found["nouns"]), list(found["verbs"]))


def most_frequent(captions: Iterable[Iterable[str]], count: int) -> list[tuple[str, int]]:
    """The words that most captions have, and how many do; of equally frequent ones those first
    in the alphabet."""
    counted = Counter(word for words in captions for word in words)
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
