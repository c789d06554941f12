"""A dependency parse as plain lists, which the rules repair and read.

spaCy's tokens are views of C structures. The rules read each attribute once and then use lists, so
that they take much less time than the parse.
"""

from collections.abc import Callable, Container, Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

from spacy.attrs import DEP, HEAD, LEMMA, LOWER, TAG
from spacy.tokens import Doc

from manymatch.scene_graphs.lexicon import AGENT_ENDINGS, ANIMALS, PEOPLE, THINGS

_COLUMNS = [LOWER, LEMMA, TAG, DEP, HEAD]
_UNSIGNED = 2**64 - 1
"""Mask for keys of strings: they are unsigned, but share a signed array with offsets of heads."""

WORD_CLASSES = "word_classes"
"""The vocabulary's table, and its one entry: word -> the tags that it can have: "NNVB"."""

MERGED = "merged"
"""The dependency label of a token that became part of another token."""


VERBS = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
NOUNS = frozenset({"NN", "NNP", "NNPS", "NNS"})
BARE = frozenset({"VB", "VBP"})
PRESENT = BARE | {"VBZ"}
FINITE = frozenset({"VBZ", "VBP"})
AUXILIARIES = frozenset({"aux", "auxpass"})


class Repair(NamedTuple):
    """A function that mends a tree at a token, and the words or tags of the tokens to call it for.

    Without both the function is called for all tokens.
    """

    mend: "Callable[[Tree, int], None]"
    words: Set[str] | None = None
    tags: Set[str] | None = None


@dataclass(slots=True)
class Tree:
    """A caption: lower-case word, lemma, Penn tag, dependency label and head of each token.

    The head of a root is the root itself; `children` are in the order of the caption. `kinds` has
    the starts of the tags that the word can have: "NNVB" for "walk", "NN" for "goalie", and "" for
    a word that is not in the lists.
    """

    words: list[str]
    lemmas: list[str]
    tags: list[str]
    deps: list[str]
    heads: list[int]
    kinds: list[str]
    children: list[list[int]]

    @classmethod
    def of(cls, doc: Doc) -> "Tree":
        strings = doc.vocab.strings
        columns = doc.to_array(_COLUMNS).astype("int64").T.tolist()
        lower, lemmas, tags, deps = (
            [strings[key & _UNSIGNED] for key in column] for column in columns[:-1]
        )
        heads = [token + offset for token, offset in enumerate(columns[-1])]
        lemmas = [lemma.lower() for lemma in lemmas]
        classes = doc.vocab.lookups.get_table(WORD_CLASSES, {}).get(WORD_CLASSES, {})
        kinds = [
            own if (own := classes.get(word, "")) == base else own + base
            for word, base in zip(lower, (classes.get(lemma, "") for lemma in lemmas), strict=True)
        ]
        for token, word in enumerate(lower):  # The lists lack "surfs", and the tagger guesses.
            base = classes.get(word.removesuffix("s"), "")
            if base and not kinds[token] and tags[token] == "NN":
                kinds[token], tags[token], lemmas[token] = base, "NNS", word.removesuffix("s")
        return cls(lower, lemmas, tags, deps, heads, kinds, _children(heads))

    def __len__(self) -> int:
        return len(self.words)

    def is_verb(self, token: int) -> bool:
        return self.tags[token].startswith("VB")

    def is_noun(self, token: int) -> bool:
        return self.tags[token].startswith("NN")

    def is_animate(self, token: int) -> bool:
        lemma = self.lemmas[token]
        if lemma in PEOPLE or lemma in ANIMALS:
            return True
        return lemma.endswith(AGENT_ENDINGS) and lemma not in THINGS

    def possessed(self, noun: int) -> bool:
        """Return whether the noun is someone's: "his hand"."""
        return any(self.tags[child] == "PRP$" for child in self.children[noun])

    def below(self, token: int, deps: Container[str]) -> list[int]:
        """Return the children of `token` with a label in `deps`."""
        labels = self.deps
        return [child for child in self.children[token] if labels[child] in deps]

    def above(self, token: int) -> Iterator[int]:
        """Yield the head of `token`, the head of this head, and so on up to the root."""
        while (head := self.heads[token]) != token:
            yield head
            token = head

    def root(self, token: int) -> int:
        """Return the root above `token`; `token` itself if it is a root."""
        return next((t for t in self.above(token) if self.heads[t] == t), token)

    def start(self, token: int) -> int:
        """Return the first token of the subtree of `token`."""
        while self.children[token] and self.children[token][0] < token:
            token = self.children[token][0]
        return token

    def attach(self, token: int, head: int, dep: str) -> None:
        """Attach `token` and its subtree to `head`, or make it a root if `head` is `token`.

        Nothing changes if `head` is in the subtree of `token`.
        """
        if head != token and token in self.above(head):
            return
        before, children = self.heads[token], self.children
        # New lists, as a repair may go through the old ones.
        children[before] = [child for child in children[before] if child != token]
        if head != token:
            children[head] = sorted([*children[head], token])
        self.heads[token], self.deps[token] = head, dep

    def replace(self, head: int, token: int) -> None:
        """Give `token` the role of its head and the words before both, and attach the head to it.

        `token` is below `head`, not necessarily directly.
        """
        before = [t for t in self.children[head] if t < min(head, token)]
        top, role = self.heads[head], self.deps[head]
        self.attach(token, token if top == head else top, role)
        for child in [*before, head]:
            self.attach(child, token, self.deps[child])

    def merge(self, first: int, last: int, core: int) -> None:
        """Merge `first..last` into one token at `core`, with head and label of the topmost one."""
        inside = range(first, last + 1)
        top = next(t for t in inside if not any(first <= h <= last for h in self.above(t)))
        head = core if self.heads[top] == top else self.heads[top]
        dep = self.deps[top]
        self.heads = [core if first <= h <= last else h for h in self.heads]
        for token in inside:
            self.heads[token], self.deps[token], self.tags[token] = core, MERGED, ""
        self.heads[core], self.deps[core] = head, dep
        self.children = _children(self.heads)


def _children(heads: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in heads]
    for token, head in enumerate(heads):
        if head != token:
            children[head].append(token)
    return children
