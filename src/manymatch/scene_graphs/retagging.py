"""Repairs of words: hyphenated words and spatial phrases are joined, and wrong tags corrected.

Each kind of error has one function.
"""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_noun, is_verb
from manymatch.scene_graphs.inflection import present_participle, verb_base
from manymatch.scene_graphs.lexicon import (
    COLOURS,
    GEAR,
    SPATIAL,
    SPATIAL_LENGTHS,
    SPATIAL_STARTS,
    STATES,
)
from manymatch.scene_graphs.tree import MERGED, Tree

_AUXILIARIES = frozenset({"aux", "auxpass"})
_HEADING = frozenset({"compound", "nmod", "nsubj", "nsubjpass", "amod", "npadvmod"})
_STAYING = frozenset({"pobj", MERGED})


def join_hyphens(tree: Tree) -> None:
    """Join "t - shirt" and "salmon - colored" to one word each."""
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


def join_spatial(tree: Tree) -> None:
    """Join "in front of", "next to" and other spatial phrases to one preposition each."""
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
    tree.tags[first] = "IN"
    governor = _displaced(tree, first)
    if governor is not None:
        _give_way(tree, first, governor)
    if first and tree.tags[first - 1] == "VBG":
        tree.attach(first, first - 1, "prep")
    if tree.heads[first] != first:
        tree.deps[first] = "prep"


def _displaced(tree: Tree, preposition: int) -> int | None:
    """Return the "is" or noun that should govern "left of" if "left" was parsed as verb or noun."""
    for child in tree.children[preposition]:
        if tree.deps[child] in _AUXILIARIES and tree.lemmas[child] == "be":
            return child
    for child in tree.children[preposition]:
        if child < preposition and is_noun(tree, child) and tree.deps[child] in _HEADING:
            return child
    return None


def _give_way(tree: Tree, preposition: int, governor: int) -> None:
    """Put `governor` in the position of the preposition, and attach the preposition to it."""
    head, dep = tree.heads[preposition], tree.deps[preposition]
    for child in tree.children[preposition]:
        if child != governor and tree.deps[child] not in _STAYING:
            label = "nsubj" if tree.deps[child] == "nsubjpass" else tree.deps[child]
            tree.attach(child, governor, label)
    tree.attach(governor, governor if head == preposition else head, dep)
    tree.attach(preposition, governor, "prep")


_AROUND_VERBS = frozenset({"prep", "advmod", "prt", "punct", "dobj"})
_BEFORE_NOUN = frozenset({"compound", "nmod"})
_DESCRIBING = frozenset({"JJ", "JJR", "JJS", "VBG", "VBN"})
_STATE_PARTICIPLES = frozenset(map(present_participle, STATES))


def _verb_has_base(tree: Tree, token: int) -> None:
    if is_verb(tree, token):
        tree.lemmas[token] = verb_base(tree.words[token], tree.lemmas[token])


def _noun_is_verb(tree: Tree, token: int) -> None:
    """In "a girl bikes on a path" bikes is a verb, but the parser sees a compound noun."""
    subject = token - 1
    if subject not in tree.below(token, {"compound"}) or not _may_be_verb(tree, token):
        return
    for child in tree.children[token]:
        if child < subject:
            tree.attach(child, subject, tree.deps[child])
    if tree.deps[token] in {
        "pobj",
        "dobj",
    }:  # The noun takes this role, and the verb joins the root.
        root = tree.root(token)
        tree.attach(subject, tree.heads[token], tree.deps[token])
        tree.attach(token, root, "conj" if is_verb(tree, root) else "acl")
    else:
        tree.attach(subject, token, "nsubj")
    for child in tree.below(token, {"appos"}):
        tree.deps[child] = "dobj"
    tree.tags[token] = "VBZ"


def _may_be_verb(tree: Tree, token: int) -> bool:
    """Return whether `token` agrees with the noun before it as its verb."""
    tag = tree.tags[token]
    if tag in {"VBZ", "VBP"}:
        return True
    if tree.deps[token] != "ROOT":
        return False
    if tag == "NNS":  # "A girl bikes": no plural follows "a".
        return any(tree.words[child] in {"a", "an"} for child in tree.below(token, {"det"}))
    # "Three dogs sleep": no singular follows "three".
    return tag == "NN" and tree.tags[token - 1] == "NNS" and bool(tree.below(token, {"nummod"}))


def _joined_noun_is_verb(tree: Tree, token: int) -> None:
    """In "a boy runs and jumps" both words are verbs."""
    if tree.tags[token] != "NNS" or tree.deps[token] != "conj":
        return
    bare = all(tree.deps[child] in _AROUND_VERBS for child in tree.children[token])
    if bare and tree.tags[tree.heads[token]] == "VBZ":
        tree.tags[token] = "VBZ"


def _state_describes(tree: Tree, token: int) -> None:
    """A "standing horse" is not a compound, but a "swimming pool" is."""
    if tree.deps[token] not in _BEFORE_NOUN or tree.words[token] not in _STATE_PARTICIPLES:
        return
    if tree.lemmas[tree.heads[token]] not in GEAR:
        tree.tags[token], tree.deps[token] = "VBG", "amod"


def _adjective_describes(tree: Tree, token: int) -> None:
    """An adjective or participle before a noun is not part of a compound."""
    if tree.deps[token] in _BEFORE_NOUN and tree.tags[token] in _DESCRIBING:
        tree.deps[token] = "amod"


def _colour_describes(tree: Tree, token: int) -> None:
    """A colour before a noun or joined to an adjective is an adjective, whatever its tag."""
    if tree.words[token] not in COLOURS or tree.tags[token].startswith("JJ"):
        return
    dep, head = tree.deps[token], tree.heads[token]
    if dep in _BEFORE_NOUN or (dep == "conj" and tree.tags[head].startswith("JJ")):
        tree.tags[token] = "JJ"
        tree.deps[token] = "conj" if dep == "conj" else "amod"
        for child in tree.below(token, _BEFORE_NOUN):
            tree.deps[child] = "amod"


def _determined_word_is_noun(tree: Tree, token: int) -> None:
    """A word with an article is a noun, even if it looks like a verb ("a building")."""
    if is_verb(tree, token) and tree.below(token, {"det"}):
        tree.tags[token] = "NN"
        tree.lemmas[token] = tree.words[token]


RETAGGINGS = (
    _verb_has_base,
    _noun_is_verb,
    _joined_noun_is_verb,
    _state_describes,
    _adjective_describes,
    _colour_describes,
    _determined_word_is_noun,
)
