"""Agreement of parsed and true graphs, on examples computed by hand."""

import pytest
from graph_accuracy import Accuracy, accuracy, lemmatiser

from manymatch.batch.scene_graph import Relation, SceneGraph


def _graph(names, attributes, *edges):
    objects = tuple(names.split())
    described = tuple(tuple(attributes.get(i, ())) for i in range(len(objects)))
    return SceneGraph(objects, objects, described, tuple(Relation(*edge) for edge in edges))


def test_counts_by_hand():
    parsed = _graph("man hat dog", {1: ["red", "big"]}, (0, "wear", 1), (0, "on", 2))
    true = _graph("man hat cat cat", {1: ["red"], 2: ["big"]}, (0, "wear", 1))
    measured = accuracy([(parsed, true)], lambda phrase: phrase)
    assert measured == {
        "objects": Accuracy(matched=2, parsed=3, true=4),
        "attributes": Accuracy(matched=1, parsed=2, true=2),
        "relations": Accuracy(matched=1, parsed=2, true=1),
    }
    assert measured["objects"].precision == pytest.approx(2 / 3)
    assert measured["objects"].recall == pytest.approx(1 / 2)
    assert measured["objects"].f1 == pytest.approx(4 / 7)


def test_equal_parts_match_once_each():
    one, two = _graph("dog", {}), _graph("dog dog", {})
    assert accuracy([(two, one)], str)["objects"] == Accuracy(matched=1, parsed=2, true=1)


def test_parts_of_different_captions_do_not_match():
    dog, cat = _graph("dog", {}), _graph("cat", {})
    assert accuracy([(dog, cat), (cat, dog)], str)["objects"].f1 == 0.0


def test_nothing_to_find_and_nothing_found_is_perfect():
    scores = accuracy([(_graph("dog", {}), _graph("dog", {}))], str)
    assert scores["relations"].f1 == scores["relations"].precision == 1.0


@pytest.mark.parametrize(
    ("phrase", "lemmas"),
    [
        ("dressed in", "dress in"),
        ("running after", "run after"),
        ("riding", "ride"),
        ("dress", "dress"),
        ("pieces of furniture", "piece of furniture"),
        ("women", "woman"),
        ("over", "over"),
        ("container", "container"),
    ],
)
def test_lemmatiser(model, phrase, lemmas):
    lemmatise = lemmatiser(model)
    assert lemmatise(phrase) == lemmas
    assert lemmatise(lemmas) == lemmas
