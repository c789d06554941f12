"""Captions vary, and their text, logical form and text graph agree."""

from collections import Counter
from random import Random

import pytest

from manymatch.batch.scene_graph import MAX_ATTRIBUTES, MAX_OBJECTS, MAX_RELATIONS
from manymatch.scenes.compose import compose
from manymatch.scenes.kinds import (
    ACTIVITIES,
    COLOUR_WORDS,
    NUMERALS,
    PREPOSITIONS,
    SIZE_WORDS,
    VERBS,
    plural,
    words_of,
)
from manymatch.scenes.twins import FRAMES, tell


@pytest.fixture(scope="module")
def sentences():
    """400 (scene, sentence) pairs."""
    result = []
    for number in range(100):
        rng = Random(f"grammar/{number}")
        _, scene = compose(rng)
        result += [(scene, tell(scene, rng)) for _ in range(4)]
    return result


def test_captions_vary(sentences):
    frames = Counter(sentence.frame for _, sentence in sentences)
    assert set(frames) == set(FRAMES) and max(frames.values()) < 0.4 * len(sentences)
    assert len({sentence.text for _, sentence in sentences}) > 0.9 * len(sentences)


def test_graphs_keep_the_limits_and_their_words_stand_in_the_text(sentences):
    for _, sentence in sentences:
        graph, text = sentence.graph, sentence.text.lower()
        assert 1 <= len(graph.objects) <= MAX_OBJECTS
        assert len(graph.objects) == len(graph.names) == len(graph.attributes)
        assert len(graph.relations) <= MAX_RELATIONS
        for surface, phrases in zip(graph.objects, graph.attributes, strict=True):
            assert surface in text and len(phrases) <= MAX_ATTRIBUTES
            assert all(phrase in text for phrase in phrases)
        ends = {end for relation in graph.relations for end in (relation.subject, relation.object)}
        assert ends <= set(range(len(graph.objects)))


def nodes_of(sentence):
    """Return the nodes of the form's objects in order, without the background."""
    graph, background = sentence.graph, sentence.form.background
    nodes = [
        k for k, name in enumerate(graph.names) if not (background and name in words_of(background))
    ]
    assert len(graph.objects) - len(nodes) == (background is not None)
    assert len(nodes) == len(sentence.form.objects)
    return nodes


def test_form_and_graph_tell_the_same_objects(sentences):
    for _, sentence in sentences:
        graph = sentence.graph
        for node, obj in zip(nodes_of(sentence), sentence.form.objects, strict=True):
            attributes = list(graph.attributes[node])
            labels = [r.label.split()[0] for r in graph.relations if r.subject == node]
            many = obj.count > 1
            words = [plural(word) if many else word for word in words_of(obj.noun)]
            assert graph.objects[node] in words
            for value, options in (
                (obj.colour, COLOUR_WORDS.get(obj.colour, (obj.colour,))),
                (obj.size, SIZE_WORDS.get(obj.size, ())),
                (many, (NUMERALS.get(obj.count),)),
            ):
                told_as = [word for word in options if word in attributes]
                assert len(told_as) == bool(value)
                attributes = [word for word in attributes if word not in told_as]
            if obj.state in attributes:
                attributes.remove(obj.state)
            elif obj.state:
                assert ACTIVITIES[obj.state] in labels
            assert not attributes


def test_form_and_graph_tell_the_same_relations(sentences):
    for _, sentence in sentences:
        nodes = nodes_of(sentence)
        edges = {(r.subject, r.object): r.label for r in sentence.graph.relations}
        for s, name, o in sentence.form.relations:
            label = edges[nodes[s], nodes[o]]
            wordings = [verb.lemma for verb in VERBS.get(name, ())] + list(
                PREPOSITIONS.get(name, ())
            )
            clothing = ["in", "with", "dress in", "have"] if name in ("wear", "with") else []
            assert any(
                label == wording or label.endswith(" " + wording) for wording in wordings + clothing
            ), (sentence.text, label, name)
        between = {(nodes[s], nodes[o]) for s, _, o in sentence.form.relations}
        assert {pair for pair in edges if set(pair) <= set(nodes)} == between
