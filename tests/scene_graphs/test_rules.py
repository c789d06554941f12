"""Sentences and their graphs, for each rule; `sentences.tsv` has both."""

import random
from pathlib import Path

from written_graphs import table, written

from manymatch.scene_graphs.lexicon import SPATIAL
from manymatch.scene_graphs.parser import scene_graph

TABLE = table(Path(__file__).with_name("sentences.tsv"))


def test_sentence(model):
    texts = [text.lower() if text.isupper() else text for text in TABLE]
    parsed = [written(scene_graph(doc)) for doc in model.pipe(texts)]
    assert dict(zip(TABLE, parsed, strict=True)) == TABLE


def test_objects_keep_their_surface_form(model):
    graph = scene_graph(model("Two Dogs and three fire trucks."))
    assert graph.objects == ("dogs", "fire trucks")
    assert graph.names == ("dog", "fire truck")


def test_a_text_may_end_with_a_spatial_phrase(model):
    for doc in model.pipe(f"a dog {' '.join(phrase)}" for phrase in sorted(SPATIAL)):
        assert scene_graph(doc).names[0] == "dog", doc.text


def test_any_order_of_words_has_a_graph(model):
    """The rules terminate and return a valid graph for any parse of nonsense."""
    rng = random.Random(0)
    words = sorted({word for sentence in TABLE for word in sentence.split()})
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 25))) for _ in range(200)]
    for doc in model.pipe(texts):
        graph = scene_graph(doc)
        assert graph.objects and all(graph.objects)
        assert len(graph.objects) == len(graph.names) == len(graph.attributes)
        for edge in graph.relations:
            assert edge.label and edge.subject != edge.object
            assert min(edge.subject, edge.object) >= 0
            assert max(edge.subject, edge.object) < len(graph.objects)
