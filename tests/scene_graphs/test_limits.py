"""Parts beyond the limits are dropped from the end and counted."""

from collections import Counter

import pytest

from manymatch.batch.scene_graph import Relation, SceneGraph
from manymatch.scene_graphs.parser import MAX_CHARACTERS, graphs, limited


def _graph(objects, attributes=0, relations=()):
    names = tuple(f"thing{i}" for i in range(objects))
    phrases = tuple(f"kind{i}" for i in range(attributes))
    return SceneGraph(names, names, (phrases,) * objects, relations)


AT_THE_LIMIT = (*(Relation(0, "on", i) for i in range(1, 13)), Relation(1, "on", 2))
EDGES = tuple(Relation(i % 5, f"verb{i}", 6) for i in range(15))
PAST = (Relation(0, "on", 12), Relation(0, "on", 13))


@pytest.mark.parametrize(
    ("graph", "expected", "dropped"),
    [
        (_graph(13, 4, AT_THE_LIMIT), _graph(13, 4, AT_THE_LIMIT), {}),
        (
            _graph(15, 1, PAST),
            _graph(13, 1, PAST[:1]),
            {"objects": 2, "attributes": 2, "relations": 1},
        ),
        (_graph(2, 6), _graph(2, 4), {"attributes": 4}),
        (_graph(7, 0, EDGES), _graph(7, 0, EDGES[:13]), {"relations": 2}),
    ],
    ids=["at the limits", "objects", "attributes", "relations"],
)
def test_parts_past_the_limits(graph, expected, dropped):
    counted = Counter[str]()
    assert limited(graph, counted) == expected
    assert +counted == Counter(dropped)


def test_tokens_past_the_limit():
    long, short = "a b c d e f g h i", "a b c d e f g h"
    graph = SceneGraph((long, "z"), (long, "z"), ((long,), ()), (Relation(0, long, 1),))
    dropped = Counter[str]()
    kept = limited(graph, dropped)
    assert kept == SceneGraph((short, "z"), (short, "z"), ((short,), ()), (Relation(0, short, 1),))
    assert +dropped == Counter(tokens=3)


def test_a_long_caption_is_cut_and_counted(model):
    caption = "A dog, " * 1000
    dropped = Counter[str]()
    (graph,) = graphs(model, [caption], dropped)
    assert graph.names == ("dog",) * 13
    assert dropped["characters"] == len(caption) - MAX_CHARACTERS
    assert dropped["objects"] > 200
