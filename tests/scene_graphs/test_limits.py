"""Parts beyond the limits are dropped from the end and counted."""

from __future__ import annotations

from collections import Counter

from spacy.language import Language

from manymatch.scene_graphs.graph import Relation, SceneGraph
from manymatch.scene_graphs.parser import MAX_CHARACTERS, graphs, limited


def _graph(objects: int, attributes: int = 0, relations: tuple[Relation, ...] = ()) -> SceneGraph:
    names = tuple(f"thing{i}" for i in range(objects))
    phrases = tuple(f"kind{i}" for i in range(attributes))
    return SceneGraph(names, names, (phrases,) * objects, relations)


def _count(**parts: int) -> Counter[str]:
    return Counter(parts)


def test_a_graph_at_the_limits_is_kept_whole() -> None:
    edges = (*(Relation(0, "on", i) for i in range(1, 13)), Relation(1, "on", 2))
    graph, dropped = _graph(13, 4, edges), Counter[str]()
    assert limited(graph, dropped) == graph
    assert +dropped == Counter()


def test_objects_past_the_limit_go_with_what_hangs_on_them() -> None:
    dropped = Counter[str]()
    kept = limited(_graph(15, 1, (Relation(0, "on", 12), Relation(0, "on", 13))), dropped)
    assert kept == _graph(13, 1, (Relation(0, "on", 12),))
    assert +dropped == _count(objects=2, attributes=2, relations=1)


def test_attributes_past_the_limit() -> None:
    dropped = Counter[str]()
    assert limited(_graph(2, 6), dropped) == _graph(2, 4)
    assert +dropped == _count(attributes=4)


def test_relations_past_the_limit() -> None:
    edges = tuple(Relation(i % 5, f"verb{i}", 6) for i in range(15))
    dropped = Counter[str]()
    assert limited(_graph(7, 0, edges), dropped).relations == edges[:13]
    assert +dropped == _count(relations=2)


def test_tokens_past_the_limit() -> None:
    long, short = "a b c d e f g h i", "a b c d e f g h"
    graph = SceneGraph((long, "z"), (long, "z"), ((long,), ()), (Relation(0, long, 1),))
    dropped = Counter[str]()
    kept = limited(graph, dropped)
    assert kept == SceneGraph((short, "z"), (short, "z"), ((short,), ()), (Relation(0, short, 1),))
    assert +dropped == _count(tokens=3)


def test_a_long_caption_is_cut_and_counted(model: Language) -> None:
    caption = "A dog, " * 1000
    dropped = Counter[str]()
    (graph,) = graphs(model, [caption], dropped)
    assert graph.names == ("dog",) * 13
    assert dropped["characters"] == len(caption) - MAX_CHARACTERS
    assert dropped["objects"] > 200


def test_one_endless_word(model: Language) -> None:
    (graph,) = graphs(model, ["x" * 100_000], Counter())
    assert len(graph.objects) == 1
