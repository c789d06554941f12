"""The verbs of relations as attributes of their subjects."""

import pytest
from written_graphs import read, written

from manymatch.batch.scene_graph import MAX_ATTRIBUTES
from manymatch.scene_graphs.verbs import add_verbs, as_parsed


@pytest.mark.parametrize(
    ("parsed", "expected"),
    [
        ("man; bench | man sit on bench", "man [sitting]"),
        ("man; bull [bucking] | man fall off of bull", "man [falling]"),
        ("man; hat [red] | man wear hat", "man [wearing]"),
        ("boy; toy | boy pick up toy", "boy [picking]"),
        ("car; tree | car parked beside tree", "car [parked]"),
        ("kite; string | kite made of string", "kite [made]"),
        ("man; sea | man kite surf in sea", "man [kite surfing]"),
        ("bird; bread | bird feed on bread", "bird [feeding]"),
        ("girl; flag | girl swing flag", "girl [swinging]"),
        ("dog [running]; park | dog run in park", "dog [running]"),
        ("man; ball; dog | man hold ball; man hold dog", "man [holding]"),
        (
            "man [young]; cup; chair | man hold cup; man sit on chair",
            "man [young, holding, sitting]",
        ),
        ("glass [full]; water | glass full of water", "glass [full]"),
        ("man; dog | man next to dog", "man"),
        ("person; dog | person left of dog", "person"),
        ("man; hat | man have hat", "man"),
        ("man; nurse | man be nurse", "man"),
        ("dog", "dog"),
    ],
)
def test_verb_of_a_relation_describes_its_subject(parsed, expected):
    graph = read(parsed)
    changed = add_verbs(graph)
    assert written(changed).split(";")[0].split(" | ")[0] == expected
    assert (changed.objects, changed.relations) == (graph.objects, graph.relations)
    assert changed.attributes[1:] == graph.attributes[1:]
    assert as_parsed(graph) == graph


def test_no_object_gets_more_attributes_than_the_limit():
    graph = read("man [old, tall, thin]; cup; chair | man hold cup; man sit on chair")
    assert add_verbs(graph).attributes[0] == ("old", "tall", "thin", "holding")
    assert len(add_verbs(graph).attributes[0]) == MAX_ATTRIBUTES
