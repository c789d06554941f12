"""How the objects of a caption relate: verbs, prepositions and possession."""

from __future__ import annotations

from collections.abc import Iterator

from manymatch.scene_graphs.attributes import bearers
from manymatch.scene_graphs.clauses import (
    complements,
    direct_objects,
    is_noun,
    is_passive,
    is_verb,
    nouns,
    subjects,
)
from manymatch.scene_graphs.graph import Relation
from manymatch.scene_graphs.lexicon import COPULAS
from manymatch.scene_graphs.tree import Tree

POSSESSION = "have"
Edge = tuple[list[int], str, list[int]]
"""Subject tokens, label, object tokens: each subject relates to each object."""


def find_relations(tree: Tree, number: dict[int, int]) -> list[Relation]:
    """The relations in the order of the words that name them, each once."""
    found: dict[Relation, None] = {}
    for token in range(len(tree)):
        for sources, label, targets in _edges(tree, token):
            for source in sources:
                for target in targets:
                    ends = number.get(source), number.get(target)
                    if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
                        found[Relation(ends[0], label, ends[1])] = None
    return list(found)


def _edges(tree: Tree, token: int) -> Iterator[Edge]:
    if is_verb(tree, token):
        yield from _verb(tree, token)
    dep = tree.deps[token]
    if dep == "poss":
        yield nouns(tree, [token]), POSSESSION, [tree.heads[token]]
    elif dep == "agent":
        yield _agent(tree, token)
    elif dep in {"prep", "prt", "advmod"} or tree.tags[token] == "IN":
        yield _preposition(tree, token)


def _verb(tree: Tree, verb: int) -> Iterator[Edge]:
    targets = direct_objects(tree, verb)
    if targets and not is_passive(tree, verb):
        yield subjects(tree, verb), _with_particle(tree, verb, tree.lemmas[verb]), targets
    if tree.lemmas[verb] in COPULAS and not tree.below(verb, {"expl"}):
        yield subjects(tree, verb), tree.lemmas[verb], nouns(tree, tree.below(verb, {"attr"}))


def _agent(tree: Tree, by: int) -> Edge:
    """The passive turned round: "a ball held by a man" is man, hold, ball."""
    verb = tree.heads[by]
    label = _with_particle(tree, verb, tree.lemmas[verb])
    return complements(tree, by), label, subjects(tree, verb)


def _preposition(tree: Tree, preposition: int) -> Edge:
    """A preposition with what governs it: "jump over", "dressed in", "full of", "above"."""
    targets = complements(tree, preposition)
    if not targets:
        return [], "", []
    governor, label = tree.heads[preposition], tree.words[preposition]
    while tree.deps[governor] in {"prep", "prt", "advmod"} and not is_noun(tree, governor):
        if not tree.below(governor, {"pobj"}) and not tree.tags[governor].startswith("RB"):
            label = f"{tree.words[governor]} {label}"
        governor = tree.heads[governor]
    if is_verb(tree, governor):
        return subjects(tree, governor), _verb_label(tree, governor, label), targets
    if is_noun(tree, governor):
        return [governor], label, targets
    return bearers(tree, governor), f"{tree.words[governor]} {label}", targets


def _verb_label(tree: Tree, verb: int, preposition: str) -> str:
    if tree.lemmas[verb] in COPULAS and not is_passive(tree, verb):
        return preposition
    word = tree.words[verb] if is_passive(tree, verb) else tree.lemmas[verb]
    return f"{_with_particle(tree, verb, word)} {preposition}"


def _with_particle(tree: Tree, verb: int, word: str) -> str:
    particles = [t for t in tree.below(verb, {"prt"}) if not tree.below(t, {"pobj"})]
    return " ".join([word, *(tree.words[t] for t in particles)])
