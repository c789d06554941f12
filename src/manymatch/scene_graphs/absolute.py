"""Repairs of "with" and a part of the body in a state: "a dog with its eyes bulging out runs"."""

from __future__ import annotations

from manymatch.scene_graphs.clauses import CLAUSES, SUBJECTS, is_animate, is_noun, possessed
from manymatch.scene_graphs.lexicon import ACTIONS, BODILY, BODY
from manymatch.scene_graphs.tree import Repair, Tree

_PRESENT = frozenset({"VB", "VBP", "VBZ"})
_AUXILIARIES = frozenset({"aux", "auxpass"})
_AFTER = frozenset({"advcl", "ccomp", "conj", "dobj", "xcomp"})
_PARTICIPLES = frozenset({"VBG", "VBN"})
_BEFORE_NOUN = frozenset({"amod", "compound", "det", "nummod", "poss"})
_OF_PERSONS = frozenset({"clad", "dressed", "seated", "surrounded"})


def _part_is_in_state(tree: Tree, token: int) -> None:
    """In "a girl with her arms spread out jumps" the arms are spread out, and the girl jumps.

    The parser takes the participle for the girl's verb, and the verb for an object or adverb.
    """
    part = token - 1
    if part < 1 or tree.deps[part] != "pobj" or tree.words[tree.heads[part]] != "with":
        return
    if tree.below(token, _AUXILIARIES) or tree.words[token] in _OF_PERSONS:
        return
    if not _is_part(tree, part) or (tree.tags[token] == "VBG" and not _moves(tree, part, token)):
        return
    link, verb = tree.heads[part], _verb_after(tree, token)
    owners = [t for t in [*tree.below(token, SUBJECTS), *tree.above(link)] if is_noun(tree, t)]
    if not owners:
        return
    owner, top = owners[0], tree.heads[token] == token
    if not top and tree.deps[token] not in CLAUSES:
        return
    if verb is not None and (top or tree.heads[owner] == owner):
        tree.attach(verb, verb, "ROOT")
        tree.attach(owner, verb, "nsubj")
        tree.tags[verb] = "VBZ" if tree.tags[verb] == "NNS" else tree.tags[verb]
    elif top:
        tree.attach(owner, owner, "ROOT")
    for other in tree.below(token, SUBJECTS):  # "Both with their hands turned".
        tree.attach(other, owner, "det")
    for other in tree.children[token]:
        if other != verb and tree.tags[other] in _PARTICIPLES:  # "Seated with her legs crossed".
            tree.attach(other, owner, "acl")
    if token in tree.above(link):
        tree.attach(link, owner, "prep")
    tree.attach(token, part, "acl")
    if tree.tags[token] == "VBD":
        tree.tags[token] = "VBN"


def _is_part(tree: Tree, noun: int) -> bool:
    """Return whether the noun is someone's thing, or "the" part of a body."""
    if possessed(tree, noun):
        return is_noun(tree, noun) and not is_animate(tree, noun)
    return tree.lemmas[noun] in BODY and any(tree.words[t] == "the" for t in tree.children[noun])


def _moves(tree: Tree, part: int, participle: int) -> bool:
    """Return whether the part does it: a tongue hangs, but no mouth sits."""
    return tree.lemmas[part] in BODY and tree.words[participle] in BODILY


def _verb_after(tree: Tree, participle: int) -> int | None:
    """Return the verb of the caption, at most two words after the participle."""
    for token in tree.below(participle, _AFTER):
        if participle < token <= participle + 2:
            plural = tree.tags[token] == "NNS" and tree.lemmas[token] in ACTIONS
            if tree.tags[token] in _PRESENT or (plural and not tree.below(token, _BEFORE_NOUN)):
                return token
    return None


ABSOLUTE: tuple[Repair, ...] = (Repair(_part_is_in_state, tags=frozenset({"VBD", "VBG", "VBN"})),)
