"""Errors of a parser: a scene graph with one word, attribute or edge out of place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from manymatch.batch.scene_graph import MAX_ATTRIBUTES, Relation, SceneGraph

GraphError = Callable[[SceneGraph, Random], SceneGraph | None]
"""The graph with one error, or None if the graph has no room for this error."""


def drop_word(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Drop one word of a phrase, or the whole phrase if it has one word. The only object stays."""
    shorter = [
        *(
            partial(_delete_object_word, graph, row, word)
            for row, text in enumerate(graph.objects)
            for word in _words(text)
        ),
        *(
            partial(_delete_attribute_word, graph, row, position, word)
            for row, texts in enumerate(graph.attributes)
            for position, text in enumerate(texts)
            for word in _words(text)
        ),
        *(
            partial(_delete_relation_word, graph, row, word)
            for row, edge in enumerate(graph.relations)
            for word in _words(edge.label)
        ),
    ]
    if len(graph.objects) == 1 and len(_words(graph.objects[0])) == 1:
        shorter = shorter[1:]
    return rng.choice(shorter)() if shorter else None


def move_attribute(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Give an attribute to another object."""
    free = [row for row, texts in enumerate(graph.attributes) if len(texts) < MAX_ATTRIBUTES]
    moves = [
        (row, position, other)
        for row, texts in enumerate(graph.attributes)
        for position in range(len(texts))
        for other in free
        if other != row
    ]
    if not moves:
        return None
    row, position, other = rng.choice(moves)
    attributes = [list(texts) for texts in graph.attributes]
    attributes[other].append(attributes[row].pop(position))
    return replace(graph, attributes=tuple(map(tuple, attributes)))


def move_edge(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Move one end of a relation to another object, or reverse the relation of the only two."""
    moves = [
        (position, end)
        for position, edge in enumerate(graph.relations)
        for end in _other_ends(edge, len(graph.objects))
    ]
    if not moves:
        return None
    position, (subject, other) = rng.choice(moves)
    relations = list(graph.relations)
    relations[position] = Relation(subject, relations[position].label, other)
    return replace(graph, relations=tuple(relations))


def any_error(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """One of the three errors, with equal probability among those that the graph has room for."""
    for error in rng.sample(ONE_KIND, len(ONE_KIND)):
        changed = error(graph, rng)
        if changed is not None:
            return changed
    return None


ONE_KIND: Sequence[GraphError] = (drop_word, move_attribute, move_edge)


def _words(text: str) -> range:
    return range(len(text.split()))


def _delete_word(text: str, word: int) -> str:
    words = text.split()
    return " ".join(words[:word] + words[word + 1 :])


def _delete_object_word(graph: SceneGraph, row: int, word: int) -> SceneGraph:
    text = _delete_word(graph.objects[row], word)
    if text:
        return replace(graph, objects=_changed(graph.objects, row, text))
    rows = [other - (other > row) for other in range(len(graph.objects))]
    return SceneGraph(
        objects=_changed(graph.objects, row),
        names=_changed(graph.names, row),
        attributes=_changed(graph.attributes, row),
        relations=tuple(
            Relation(rows[edge.subject], edge.label, rows[edge.object])
            for edge in graph.relations
            if row not in (edge.subject, edge.object)
        ),
    )


def _delete_attribute_word(graph: SceneGraph, row: int, position: int, word: int) -> SceneGraph:
    texts = graph.attributes[row]
    text = _delete_word(texts[position], word)
    left = _changed(texts, position, *([text] if text else []))
    return replace(graph, attributes=_changed(graph.attributes, row, left))


def _delete_relation_word(graph: SceneGraph, row: int, word: int) -> SceneGraph:
    edge = graph.relations[row]
    label = _delete_word(edge.label, word)
    left = [replace(edge, label=label)] if label else []
    return replace(graph, relations=_changed(graph.relations, row, *left))


def _changed(items: tuple, row: int, *new: object) -> tuple:
    """The items with `new` in place of the item in this row."""
    return (*items[:row], *new, *items[row + 1 :])


def _other_ends(edge: Relation, count: int) -> list[tuple[int, int]]:
    """The edge's ends with one end moved, or the reversed edge if there is no other object."""
    others = [row for row in range(count) if row not in (edge.subject, edge.object)]
    moved = [(row, edge.object) for row in others] + [(edge.subject, row) for row in others]
    reverse = [(edge.object, edge.subject)] if edge.subject != edge.object else []
    return moved or reverse
