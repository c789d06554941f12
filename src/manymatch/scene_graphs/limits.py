"""CORA's limits on a graph: what lies past them is dropped from the end, and counted."""

from __future__ import annotations

from collections import Counter

from manymatch.scene_graphs.graph import (
    MAX_ATTRIBUTES,
    MAX_OBJECTS,
    MAX_RELATIONS,
    MAX_TOKENS,
    Relation,
    SceneGraph,
)


def limited(graph: SceneGraph, dropped: Counter[str]) -> SceneGraph:
    """`graph` within the limits; adds to `dropped` how many of each part were left out."""
    attributes = [phrases[:MAX_ATTRIBUTES] for phrases in graph.attributes[:MAX_OBJECTS]]
    relations = [edge for edge in graph.relations if max(edge.subject, edge.object) < MAX_OBJECTS]
    relations = relations[:MAX_RELATIONS]
    dropped["objects"] += max(0, len(graph.objects) - MAX_OBJECTS)
    dropped["attributes"] += sum(map(len, graph.attributes)) - sum(map(len, attributes))
    dropped["relations"] += len(graph.relations) - len(relations)
    return SceneGraph(
        objects=tuple(_short(phrase, dropped) for phrase in graph.objects[:MAX_OBJECTS]),
        names=tuple(_short(phrase, Counter()) for phrase in graph.names[:MAX_OBJECTS]),
        attributes=tuple(tuple(_short(p, dropped) for p in phrases) for phrases in attributes),
        relations=tuple(
            Relation(edge.subject, _short(edge.label, dropped), edge.object) for edge in relations
        ),
    )


def _short(phrase: str, dropped: Counter[str]) -> str:
    words = phrase.split()
    dropped["tokens"] += max(0, len(words) - MAX_TOKENS)
    return phrase if len(words) <= MAX_TOKENS else " ".join(words[:MAX_TOKENS])
