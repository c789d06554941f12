"""Relations between the objects of a caption: verbs, prepositions and possession."""

from collections.abc import Container, Iterator

from manymatch.batch.scene_graph import Relation
from manymatch.scene_graphs import lexicon
from manymatch.scene_graphs.attributes import bearers
from manymatch.scene_graphs.clauses import (
    complements,
    coordinated,
    direct_objects,
    is_passive,
    nouns,
    subjects,
)
from manymatch.scene_graphs.tree import Tree

POSSESSION = "have"
Edge = tuple[list[int], str, list[int]]
"""Subject tokens, label, object tokens. Each subject has this relation to each object."""
_NO_EDGE: Edge = ([], "", [])
_AT = frozenset({"in", "on", "at"})
_LINKS = frozenset({"prep", "prt", "advmod"})


def find_relations(tree: Tree, number: dict[int, int], denied: Container[int]) -> list[Relation]:
    """Return the distinct relations, in the order of the words that name them."""
    relations: dict[Relation, None] = {}
    for token in range(len(tree)):
        if token in denied:
            continue
        for sources, label, targets in _edges(tree, token):
            for subject in _numbers(sources, number):
                for target in _numbers(targets, number):
                    if subject != target:
                        relations[Relation(subject, label, target)] = None
    return list(relations)


def _numbers(tokens: list[int], number: dict[int, int]) -> list[int]:
    return [number[token] for token in tokens if token in number]


def _edges(tree: Tree, token: int) -> Iterator[Edge]:
    dep = tree.deps[token]
    if tree.is_verb(token):
        yield _action(tree, token)
    if tree.lemmas[token] == "be" and tree.below(token, {"nsubj"}):
        yield subjects(tree, token), "be", nouns(tree, tree.below(token, {"attr"}))
    elif dep == "poss":
        yield nouns(tree, [token]), POSSESSION, [tree.heads[token]]
    elif dep == "agent":
        yield _agent(tree, token)
    elif _is_preposition(tree, token):
        yield _preposition(tree, token)


def _is_preposition(tree: Tree, token: int) -> bool:
    if tree.deps[token] == "prt" or tree.words[token] in lexicon.RELATIVES:
        return False
    return tree.deps[token] in _LINKS or tree.tags[token] == "IN"


def _action(tree: Tree, verb: int) -> Edge:
    if is_passive(tree, verb):
        return _NO_EDGE
    label = _label(tree, verb, tree.lemmas[verb])
    return subjects(tree, verb), label, direct_objects(tree, verb)


def _agent(tree: Tree, by: int) -> Edge:
    """Return the active direction of a passive: "a ball held by a man" is man, hold, ball."""
    verb = tree.heads[by]
    label = _label(tree, verb, tree.lemmas[verb])
    return complements(tree, by), label, subjects(tree, verb)


def _preposition(tree: Tree, preposition: int) -> Edge:
    """Return the edge of a preposition and its governor: "jump over", "dressed in", "full of"."""
    targets = complements(tree, preposition)
    if not targets:
        return _NO_EDGE
    governor, label = _governor(tree, preposition)
    if tree.is_verb(governor):
        return _verb_preposition(tree, governor, label, targets)
    if tree.is_noun(governor):
        return _noun_preposition(tree, governor, label, targets)
    return bearers(tree, governor), f"{tree.words[governor]} {label}", targets


def _governor(tree: Tree, preposition: int) -> tuple[int, str]:
    """Return the governing verb, noun or adjective, and the preposition with words in between."""
    governor, words = preposition, [tree.words[preposition]]
    for governor in tree.above(preposition):
        if tree.deps[governor] not in _LINKS or tree.is_noun(governor):
            break
        is_adverb = tree.tags[governor].startswith("RB")
        named = tree.words[governor] in lexicon.DIRECTIONS or not is_adverb
        if named and not tree.below(governor, {"pobj"}):
            words.insert(0, tree.words[governor])
    return governor, " ".join(words)


def _verb_preposition(tree: Tree, verb: int, preposition: str, targets: list[int]) -> Edge:
    if tree.lemmas[verb] == "be":
        return subjects(tree, verb), preposition, targets
    if is_passive(tree, verb):
        if agents := tree.below(verb, {"agent"}):
            return complements(tree, agents[0]), preposition, targets
        return subjects(tree, verb), _label(tree, verb, tree.words[verb], preposition), targets
    acted_on = direct_objects(tree, verb) or _prepositional_objects(tree, verb, preposition)
    if acted_on and _brings(tree, verb, preposition, targets):
        return acted_on, preposition, targets
    at_place = preposition in lexicon.LOCATING or preposition in _AT
    if acted_on and at_place and not _is_done_by_named(tree, verb):
        return acted_on, preposition, targets
    touched = preposition == "on" and any(tree.lemmas[target] in lexicon.BODY for target in targets)
    if (
        acted_on
        and not touched
        and (preposition in lexicon.LOCATING or (preposition in _AT and _is_place(tree, targets)))
    ):
        return subjects(tree, verb), preposition, targets
    return subjects(tree, verb), _label(tree, verb, tree.lemmas[verb], preposition), targets


def _is_done_by_named(tree: Tree, verb: int) -> bool:
    """Return whether a noun names who acts. "Someone" and "we" are no objects of the graph, so that
    the place in "someone drives a cart near a plane" is that of the cart."""
    return any(
        tree.is_noun(t) and tree.words[t] not in lexicon.PRONOUNS for t in subjects(tree, verb)
    )


def _prepositional_objects(tree: Tree, verb: int, other: str) -> list[int]:
    """Return the objects of a verb such as "look at", for an `other` preposition than its own."""
    preposition_of_verb = lexicon.OBJECT_PREPOSITIONS.get(tree.lemmas[verb], other)
    links = [t for t in tree.below(verb, {"prep"}) if tree.words[t] == preposition_of_verb != other]
    return [noun for link in links for noun in complements(tree, link)]


def _noun_preposition(tree: Tree, noun: int, preposition: str, targets: list[int]) -> Edge:
    """Relate the noun before the preposition; for "in the park", the subject of the noun's verb.

    A phrase after a list of nouns belongs to all of them: "a man and a woman in a boat".
    """
    link = tree.heads[noun]
    thing = tree.deps[noun] == "dobj" and not tree.is_animate(noun)
    setting = thing and any(tree.lemmas[target] in lexicon.SETTINGS for target in targets)
    if preposition in _AT and (_is_place(tree, targets) or setting):
        if tree.deps[noun] == "dobj":
            return subjects(tree, link), preposition, targets
        verb = tree.heads[link]
        if tree.deps[noun] == "pobj" and tree.is_verb(verb) and _completes(tree, link, noun):
            return _verb_preposition(tree, verb, preposition, targets)
    first = _first_of_list(tree, noun)
    together = tree.deps[first] == "ROOT" and preposition in lexicon.LOCATING
    theirs = any(tree.words[t] == "their" for target in targets for t in tree.children[target])
    if theirs or (together and not any(_is_worn(tree, target) for target in targets)):
        noun = first
    listed = [other for other in coordinated(tree, noun) if noun < other < targets[0]]
    return [noun, *listed], preposition, targets


def _is_worn(tree: Tree, noun: int) -> bool:
    coloured = tree.words[noun] in lexicon.COLOURS and tree.words[max(0, noun - 1)] == "in"
    return coloured or tree.lemmas[noun] in lexicon.WORN


def _first_of_list(tree: Tree, noun: int) -> int:
    while tree.deps[noun] == "conj" and tree.is_noun(tree.heads[noun]):
        noun = tree.heads[noun]
    return noun


def _completes(tree: Tree, link: int, noun: int) -> bool:
    """Return whether the noun takes part in the verb's action: "looks at", "digs with a spade"."""
    if tree.words[link] in {"with", "for"}:
        return not tree.is_animate(noun)
    return lexicon.OBJECT_PREPOSITIONS.get(tree.lemmas[tree.heads[link]]) == tree.words[link]


def _brings(tree: Tree, verb: int, preposition: str, targets: list[int]) -> bool:
    """Return whether the verb's object is at the targets: "hold a ball in his hand", "put on"."""
    if tree.lemmas[verb] in lexicon.MARKING:
        return preposition == "on"
    if tree.lemmas[verb] in lexicon.MAKING:
        return preposition in {"out of", "from", "of"}
    if tree.lemmas[verb] in lexicon.PLACING:
        return preposition in lexicon.LOCATING
    return preposition in _AT and any(tree.possessed(target) for target in targets)


def _is_place(tree: Tree, targets: list[int]) -> bool:
    return any(tree.lemmas[target] in lexicon.PLACES for target in targets)


def _label(tree: Tree, verb: int, word: str, *prepositions: str) -> str:
    """Return `word`, a form of the verb, with its particles ("pick up") and prepositions."""
    particles = [t for t in tree.below(verb, {"prt"}) if not tree.below(t, {"pobj", "prep"})]
    return " ".join([word, *(tree.words[t] for t in particles), *prepositions])
