"""Repairs of a parse before the rules read it: words that act as one, and common faults.

The small parser was trained on news and telephone talk. What it gets wrong in captions again and
again is mended here, each fault by one function, so that the rules may trust the tree.
"""

from __future__ import annotations

from manymatch.scene_graphs.clauses import is_noun, is_verb
from manymatch.scene_graphs.inflection import verb_base
from manymatch.scene_graphs.lexicon import COLOURS, SPATIAL, SPATIAL_LENGTHS, SPATIAL_STARTS
from manymatch.scene_graphs.tree import MERGED, Tree

_AUXILIARIES = frozenset({"aux", "auxpass"})
_BEFORE_NOUN = frozenset({"compound", "nmod"})
_DESCRIBING = frozenset({"JJ", "JJR", "JJS", "VBG", "VBN"})
_FINITE = frozenset({"VBZ", "VBP", "VBD"})
_HEADING = frozenset({"compound", "nmod", "nsubj", "nsubjpass", "amod"})
_LISTED = frozenset({"pobj", "dobj", "conj"})
_SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "expl"})
_SUBORDINATE = frozenset({"advcl", "conj", "ccomp", "parataxis", "dep"})
_STAYING = frozenset({"pobj", MERGED})


def repair(tree: Tree) -> Tree:
    """`tree`, changed in place."""
    _join_hyphens(tree)
    _join_spatial(tree)
    for token in range(len(tree)):
        _verb_has_base(tree, token)
        _adjective_describes(tree, token)
        _colour_describes(tree, token)
        _determined_word_is_noun(tree, token)
        _subject_of_clause(tree, token)
        _subject_before_verb(tree, token)
        _list_goes_on(tree, token)
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
    tree.tags[first] = "IN"
    before = [child for child in tree.children[first] if child < first]
    governor = next((t for t in before if tree.deps[t] in _AUXILIARIES), None)
    if governor is None:
        governor = next((t for t in before if is_noun(tree, t) and tree.deps[t] in _HEADING), None)
    if governor is not None:
        _give_way(tree, first, governor)
    if tree.heads[first] != first:
        tree.deps[first] = "prep"


def _give_way(tree: Tree, preposition: int, governor: int) -> None:
    """Put the "is" or noun before "left of" where the parse has "left" as verb or noun."""
    head, dep = tree.heads[preposition], tree.deps[preposition]
    for child in tree.children[preposition]:
        if child != governor and tree.deps[child] not in _STAYING:
            label = "nsubj" if tree.deps[child] == "nsubjpass" else tree.deps[child]
            tree.attach(child, governor, label)
    tree.attach(governor, governor if head == preposition else head, dep)
    tree.attach(preposition, governor, "prep")


def _verb_has_base(tree: Tree, token: int) -> None:
    if is_verb(tree, token):
        tree.lemmas[token] = verb_base(tree.words[token], tree.lemmas[token])


def _adjective_describes(tree: Tree, token: int) -> None:
    """An adjective or participle before a noun is no part of its name."""
    if tree.deps[token] in _BEFORE_NOUN and tree.tags[token] in _DESCRIBING:
        tree.deps[token] = "amod"


def _colour_describes(tree: Tree, token: int) -> None:
    """A colour beside a noun or an adjective is an adjective, whatever the tagger took it for."""
    if tree.words[token] not in COLOURS or tree.tags[token].startswith("JJ"):
        return
    dep, head = tree.deps[token], tree.heads[token]
    if dep in _BEFORE_NOUN or (dep == "conj" and tree.tags[head].startswith("JJ")):
        tree.tags[token] = "JJ"
        tree.deps[token] = "conj" if dep == "conj" else "amod"
        for child in tree.below(token, _BEFORE_NOUN):
            tree.deps[child] = "amod"


def _determined_word_is_noun(tree: Tree, token: int) -> None:
    """What has an article is a noun, even where it looks like a verb ("a building")."""
    if is_verb(tree, token) and tree.below(token, {"det"}):
        tree.tags[token] = "NN"
        tree.lemmas[token] = tree.words[token]


def _subject_of_clause(tree: Tree, token: int) -> None:
    """In "the cow standing by the fence is red" the cow is red, not its standing."""
    if tree.deps[token] == "csubj" and (own := tree.below(token, {"nsubj"})):
        tree.attach(own[0], tree.heads[token], "nsubj")
        tree.attach(token, own[0], "acl")


def _subject_before_verb(tree: Tree, token: int) -> None:
    """In "... a box and a bag is ..." the bag is the subject of the verb right behind it."""
    if tree.tags[token] not in _FINITE or tree.deps[token] not in _SUBORDINATE:
        return
    if token == 0 or tree.below(token, _SUBJECTS):
        return
    noun = token - 1
    if is_noun(tree, noun) and tree.deps[noun] == "conj" and token not in tree.above(noun):
        clause = next((t for t in tree.above(noun) if is_verb(tree, t)), token)
        if clause != token and token not in tree.above(clause):
            tree.attach(token, clause, "conj")
            tree.attach(noun, token, "nsubj")


def _list_goes_on(tree: Tree, token: int) -> None:
    """In "a beach with a hat, a cat and a man" the cat follows the hat, not the beach."""
    if tree.deps[token] == "appos" and tree.below(token, {"conj"}):
        before = token - 1
        while before > tree.heads[token] and tree.deps[before] not in _LISTED:
            before -= 1
        if before > tree.heads[token]:
            tree.attach(token, before, "conj")
