"""An error changes one thing of a graph, leaves one that networks can read, and is repeatable."""

from collections import Counter
from random import Random

import pytest

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import MAX_ATTRIBUTES, Relation, SceneGraph
from manymatch.experiments.probes.parse_errors import (
    ONE_KIND,
    any_error,
    draw_errors,
    drop_word,
    move_attribute,
    move_edge,
)
from manymatch.shards.sample import check_graph

GRAPH = SceneGraph(
    objects=("construction worker", "dog", "red ball"),
    names=("construction worker", "dog", "red ball"),
    attributes=(("very tall", "old"), (), ("big",)),
    relations=(Relation(0, "next to", 1), Relation(1, "holds", 2)),
)
SMALLEST = SceneGraph(("dog",), ("dog",), ((),), ())


def words(graph):
    texts = [*graph.objects, *(text for row in graph.attributes for text in row)]
    return Counter(" ".join([*texts, *(edge.label for edge in graph.relations)]).split())


def changed(error, graph=GRAPH, draws=200):
    values = [error(graph, Random(seed)) for seed in range(draws)]
    assert all(one is not None for one in values)
    return [one for one in values if one is not None]


@pytest.mark.parametrize("error", [*ONE_KIND, any_error])
def test_the_graph_changes_and_stays_one_and_the_smallest_has_no_room(error):
    for graph in changed(error):
        check_graph(graph)
        assert graph != GRAPH
        assert all(edge.subject != edge.object for edge in graph.relations)
    assert error(SMALLEST, Random(0)) is None


def test_a_dropped_word_is_one_word_or_takes_its_object_along():
    lost = [words(GRAPH) - words(graph) for graph in changed(drop_word)]
    singles = {word for one in lost if one.total() == 1 for word in one}
    assert singles == set(words(GRAPH)) - {"dog"}
    # Without the dog both its relations are gone, and its attributes, of which it has none.
    assert Counter(["dog", "next", "to", "holds"]) in lost
    # Objects behind a dropped one keep their own.
    graph = SceneGraph(
        ("dog", "cat"), ("dog", "cat"), (("red",), ("big",)), (Relation(1, "sees", 1),)
    )
    alone = next(one for one in changed(drop_word, graph) if one.objects == ("cat",))
    assert (alone.names, alone.attributes) == (("cat",), (("big",),))
    assert alone.relations == (Relation(0, "sees", 0),)


def test_a_moved_attribute_has_another_object_that_has_room():
    for graph in changed(move_attribute):
        assert words(graph) == words(GRAPH)
        assert (graph.objects, graph.relations) == (GRAPH.objects, GRAPH.relations)
    placed = {graph.attributes for graph in changed(move_attribute)}
    assert len(placed) == 6
    full = tuple(f"a{n}" for n in range(MAX_ATTRIBUTES))
    graph = SceneGraph(("dog", "cat"), ("dog", "cat"), (full, ("red",)), ())
    for one in changed(move_attribute, graph):
        assert [len(row) for row in one.attributes] == [MAX_ATTRIBUTES - 1, 2]


def test_a_moved_edge_has_one_other_end():
    for graph in changed(move_edge):
        assert words(graph) == words(GRAPH)
        ends = [
            (old.subject != new.subject) + (old.object != new.object)
            for old, new in zip(GRAPH.relations, graph.relations, strict=True)
        ]
        assert sorted(ends) == [0, 1]
    # Between two objects an edge turns round.
    graph = SceneGraph(("dog", "cat"), ("dog", "cat"), ((), ()), (Relation(0, "sees", 1),))
    assert {one.relations for one in changed(move_edge, graph)} == {(Relation(1, "sees", 0),)}
    loop = SceneGraph(("dog",), ("dog",), ((),), (Relation(0, "sees", 0),))
    assert move_edge(loop, Random(0)) is None


def captions(count):
    return [CaptionEntry(str(n), "", GRAPH if n % 2 else SMALLEST) for n in range(count)]


def test_so_many_captions_get_an_error_and_fewer_are_a_part_of_more():
    few, more = (draw_errors(captions(100), any_error, count, "0") for count in (10, 30))
    assert len(more) == 30 and list(more.items())[:10] == list(few.items())
    assert all(row % 2 and caption.graph != GRAPH for row, caption in more.items())
    assert few == draw_errors(captions(100), any_error, 10, "0")
    assert few != draw_errors(captions(100), any_error, 10, "1")
    assert len(draw_errors(captions(10), any_error, 8, "0")) == 5  # all that have room
