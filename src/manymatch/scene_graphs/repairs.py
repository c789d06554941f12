"""Repairs of a parse before the rules read it: words that act as one, and common faults.

The small parser was trained on news and telephone talk. What it gets wrong in captions again and
again is mended here, each fault by one function, so that the rules may trust the tree.
"""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_verb
from manymatch.scene_graphs.lexicon import COLOURS, SPATIAL, SPATIAL_LENGTHS, SPATIAL_STARTS
from manymatch.scene_graphs.tree import Tree


def repair(tree: Tree) -> Tree:
    """`tree`, changed in place."""
    _join_hyphens(tree)
    _join_spatial(tree)
    _colours_describe(tree)
    _determined_words_are_nouns(tree)
    return tree


def _join_hyphens(tree: Tree) -> None:
    """Make one word of "t - shirt" and "salmon - colored"."""
    token = len(tree) - 2
    while token > 0:
        if tree.tags[token] == "HYPH":
            first = token - 1
            while first > 1 and tree.tags[first - 1] == "HYPH":
                first -= 2
            _join(tree, first, token + 1)
            token = first
        token -= 1


def _join(tree: Tree, first: int, last: int) -> None:
    before = "".join(tree.words[first:last])
    tree.words[last] = before + tree.words[last]
    tree.lemmas[last] = before + tree.lemmas[last]
    tag = tree.tags[last]
    tree.merge(first, last, core=last)
    tree.tags[last] = tag


def _join_spatial(tree: Tree) -> None:
    """Make one preposition of "in front of", "next to" and the like."""
    for first, word in enumerate(tree.words):
        if word in SPATIAL_STARTS and tree.tags[first]:
            length = next(
                (n for n in SPATIAL_LENGTHS if tuple(tree.words[first : first + n]) in SPATIAL), 0
            )
            if length:
                _join_preposition(tree, first, first + length - 1)


def _join_preposition(tree: Tree, first: int, last: int) -> None:
    phrase = " ".join(tree.words[first : last + 1])
    tree.merge(first, last, core=first)
    tree.words[first] = tree.lemmas[first] = phrase
    tree.tags[first], tree.deps[first] = "IN", "prep"


def _colours_describe(tree: Tree) -> None:
    """A colour before a noun is an adjective, whatever the tagger took it for."""
    for token, word in enumerate(tree.words):
        if word in COLOURS and tree.deps[token] in {"compound", "nmod"}:
            tree.tags[token], tree.deps[token] = "JJ", "amod"


def _determined_words_are_nouns(tree: Tree) -> None:
    """What has an article is a noun, even where it looks like a verb ("a building")."""
    for token in range(len(tree)):
        if is_verb(tree, token) and tree.below(token, {"det"}):
            tree.tags[token] = "NN"
            tree.lemmas[token] = tree.words[token]
