"""Graphs as text: `man; hat [blue] | man wear hat`, objects with attributes, then relations."""

from itertools import permutations

from manymatch.batch.scene_graph import Relation, SceneGraph


def table(path):
    """Return the text before and the graph after the tab of each line of the file."""
    lines = path.read_text("utf-8").splitlines()
    return dict(line.split("\t") for line in lines if line and not line.startswith("#"))


def written(graph):
    objects = "; ".join(
        name + (f" [{', '.join(phrases)}]" if phrases else "")
        for name, phrases in zip(graph.names, graph.attributes, strict=True)
    )
    names = graph.names
    edges = "; ".join(f"{names[r.subject]} {r.label} {names[r.object]}" for r in graph.relations)
    return f"{objects} | {edges}" if edges else objects


def read(text):
    """Return the graph that `text` describes; a relation is between the longest names that fit."""
    objects, _, edges = text.partition(" | ")
    parts = [part.rstrip("]").partition(" [") for part in objects.split("; ")]
    names = tuple(name for name, _, _ in parts)
    described = tuple(tuple(phrases.split(", ")) if phrases else () for _, _, phrases in parts)
    relations = tuple(_relation(edge, names) for edge in edges.split("; ") if edge)
    return SceneGraph(names, names, described, relations)


def _relation(edge, names):
    subject, target = max(
        (
            (a, b)
            for a, b in permutations(range(len(names)), 2)
            if edge.startswith(f"{names[a]} ") and edge.endswith(f" {names[b]}")
        ),
        key=lambda pair: len(names[pair[0]] + names[pair[1]]),
    )
    return Relation(subject, edge[len(names[subject]) + 1 : -len(names[target]) - 1], target)
