"""Sentences and their graphs, for each rule; `sentences.tsv` has both."""

import random
from pathlib import Path

import pytest
from written_graphs import table, written

from manymatch.scene_graphs.lexicon import SPATIAL
from manymatch.scene_graphs.parser import scene_graph

TABLE = table(Path(__file__).with_name("sentences.tsv"))


@pytest.mark.parametrize("sentence", TABLE)
def test_sentence(model, sentence):
    text = sentence.lower() if sentence.isupper() else sentence
    assert written(scene_graph(model(text))) == TABLE[sentence]


def test_objects_keep_their_surface_form(model):
    graph = scene_graph(model("Two Dogs and three fire trucks."))
    assert graph.objects == ("dogs", "fire trucks")
    assert graph.names == ("dog", "fire truck")


@pytest.mark.parametrize("phrase", sorted(SPATIAL))
def test_a_text_may_end_with_a_spatial_phrase(model, phrase):
    assert scene_graph(model(f"a dog {' '.join(phrase)}")).names[0] == "dog"


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
