"""A dependency parse as plain lists, which the rules repair and read.

spaCy's own tokens are views into C structures; reading each attribute once and working on lists
keeps the rules far cheaper than the parse.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from spacy.attrs import DEP, HEAD, LEMMA, LOWER, TAG
from spacy.tokens import Doc

_COLUMNS = [LOWER, LEMMA, TAG, DEP, HEAD]
_UNSIGNED = 2**64 - 1
"""Keys of strings are unsigned, offsets of heads signed; the array has one type for both."""

MERGED = "merged"
"""The dependency label of a token that became part of another one."""


@dataclass(slots=True)
class Tree:
    """One caption, token by token: lower-case word, lemma, Penn tag, dependency label, head.

    The head of a root is the root itself; `children` are in the order of the caption.
    """

    words: list[str]
    lemmas: list[str]
    tags: list[str]
    deps: list[str]
    heads: list[int]
    children: list[list[int]]

    @classmethod
    def of(cls, doc: Doc) -> Tree:
        strings = doc.vocab.strings
        columns = doc.to_array(_COLUMNS).astype("int64").T.tolist()
        lower, lemmas, tags, deps = (
            [strings[key & _UNSIGNED] for key in column] for column in columns[:-1]
        )
        heads = [token + offset for token, offset in enumerate(columns[-1])]
        return cls(lower, [lemma.lower() for lemma in lemmas], tags, deps, heads, _children(heads))

    def __len__(self) -> int:
        return len(self.words)

    def below(self, token: int, deps: Container[str]) -> list[int]:
        """The children of `token` whose label is among `deps`."""
        labels = self.deps
        return [child for child in self.children[token] if labels[child] in deps]

    def above(self, token: int) -> Iterator[int]:
        """The head of `token`, its head, and so on up to the root."""
        while (head := self.heads[token]) != token:
            yield head
            token = head

    def root(self, token: int) -> int:
        """The root above `token`, or itself."""
        return next((t for t in self.above(token) if self.heads[t] == t), token)

    def start(self, token: int) -> int:
        """The first token of all that is below `token`, or itself."""
        while self.children[token] and self.children[token][0] < token:
            token = self.children[token][0]
        return token

    def attach(self, token: int, head: int, dep: str) -> None:
        """Hang `token`, with all below it, under `head` (itself: a root); not if that is below."""
        if head != token and token in self.above(head):
            return
        self.heads[token] = head
        self.deps[token] = dep
        self.children = _children(self.heads)

    def merge(self, first: int, last: int, core: int) -> None:
        """Make `first..last` one token at `core`; the topmost of them gives head and label."""
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
