"""Errors that a parser makes: a scene graph with one word, attribute or edge out of place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from manymatch.scene_graphs.graph import MAX_ATTRIBUTES, Relation, SceneGraph

GraphError = Callable[[SceneGraph, Random], SceneGraph | None]
"""The graph with one error, or None where it has no room for such an error."""


def drop_word(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Leave out one word of a phrase, and the phrase if it has no other; never the only object."""
    places: list[tuple[str, Any, int]] = [
        *(("object", row, word) for row, text in enumerate(graph.objects) for word in _words(text)),
        *(
            ("attribute", (row, place), word)
            for row, texts in enumerate(graph.attributes)
            for place, text in enumerate(texts)
            for word in _words(text)
        ),
        *(
            ("relation", row, word)
            for row, edge in enumerate(graph.relations)
            for word in _words(edge.label)
        ),
    ]
    if len(graph.objects) == 1 and len(_words(graph.objects[0])) == 1:
        places = places[1:]
    if not places:
        return None
    kind, where, word = rng.choice(places)
    return _WITHOUT[kind](graph, where, word)


def move_attribute(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Give an attribute to another object."""
    free = [row for row, texts in enumerate(graph.attributes) if len(texts) < MAX_ATTRIBUTES]
    moves = [
        (row, place, other)
        for row, texts in enumerate(graph.attributes)
        for place in range(len(texts))
        for other in free
        if other != row
    ]
    if not moves:
        return None
    row, place, other = rng.choice(moves)
    attributes = [list(texts) for texts in graph.attributes]
    attributes[other].append(attributes[row].pop(place))
    return replace(graph, attributes=tuple(map(tuple, attributes)))


def move_edge(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Let a relation begin or end at another object; between the only two objects turn it round."""
    moves = [
        (place, end)
        for place, edge in enumerate(graph.relations)
        for end in _other_ends(edge, len(graph.objects))
    ]
    if not moves:
        return None
    place, (subject, other) = rng.choice(moves)
    relations = list(graph.relations)
    relations[place] = Relation(subject, relations[place].label, other)
    return replace(graph, relations=tuple(relations))


def any_error(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """One of the three, each as likely where there is room for it."""
    for error in rng.sample(ONE_KIND, len(ONE_KIND)):
        changed = error(graph, rng)
        if changed is not None:
            return changed
    return None


ONE_KIND: Sequence[GraphError] = (drop_word, move_attribute, move_edge)


def _words(text: str) -> range:
    return range(len(text.split()))


def _without(text: str, word: int) -> str:
    words = text.split()
    return " ".join(words[:word] + words[word + 1 :])


def _without_object_word(graph: SceneGraph, row: int, word: int) -> SceneGraph:
    text = _without(graph.objects[row], word)
    if text:
        return replace(graph, objects=_replaced(graph.objects, row, text))
    rows = [other - (other > row) for other in range(len(graph.objects))]
    return SceneGraph(
        objects=_removed(graph.objects, row),
        names=_removed(graph.names, row),
        attributes=_removed(graph.attributes, row),
        relations=tuple(
            Relation(rows[edge.subject], edge.label, rows[edge.object])
            for edge in graph.relations
            if row not in (edge.subject, edge.object)
        ),
    )


def _without_attribute_word(graph: SceneGraph, where: tuple[int, int], word: int) -> SceneGraph:
    row, place = where
    texts = graph.attributes[row]
    text = _without(texts[place], word)
    kept = _replaced(texts, place, text) if text else _removed(texts, place)
    return replace(graph, attributes=_replaced(graph.attributes, row, kept))


def _without_relation_word(graph: SceneGraph, row: int, word: int) -> SceneGraph:
    edge = graph.relations[row]
    label = _without(edge.label, word)
    changed = replace(edge, label=label)
    kept = _replaced(graph.relations, row, changed) if label else _removed(graph.relations, row)
    return replace(graph, relations=kept)


_WITHOUT: dict[str, Callable[..., SceneGraph]] = {
    "object": _without_object_word,
    "attribute": _without_attribute_word,
    "relation": _without_relation_word,
}


def _replaced(items: tuple, row: int, item: object) -> tuple:
    return (*items[:row], item, *items[row + 1 :])


def _removed(items: tuple, row: int) -> tuple:
    return items[:row] + items[row + 1 :]


def _other_ends(edge: Relation, count: int) -> list[tuple[int, int]]:
    """Subject and object of the edge with one of them moved; turned round if there is no other."""
    others = [row for row in range(count) if row not in (edge.subject, edge.object)]
    moved = [(row, edge.object) for row in others] + [(edge.subject, row) for row in others]
    turned = [(edge.object, edge.subject)] if edge.subject != edge.object else []
    return moved or turned
