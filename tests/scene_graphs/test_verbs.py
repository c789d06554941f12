"""English verb forms, and the verbs of relations as attributes of their subjects."""

import pytest
from written_graphs import read, written

from manymatch.scene_graphs.verbs import (
    add_verbs,
    as_parsed,
    participle_base,
    present_participle,
    verb_base,
)

PARTICIPLES = """
    run running, sit sitting, ride riding, lie lying, open opening, play playing, sleep sleeping,
    see seeing, fix fixing, be being, hop hopping, quit quitting
"""
BASES = """
    riding rid ride, rides rid ride, staring star stare, striped strip stripe,
    stripping strip strip, stars star star, walking walk walk, playing play play, ran run run
"""


def test_forms_of_verbs():
    for base, participle in map(str.split, PARTICIPLES.split(",")):
        assert present_participle(base) == participle
    for base in ("ride", "run", "sing", "serve", "dance", "juggle", "roll", "surf", "advertise"):
        assert participle_base(present_participle(base)) == base
    for word, lemma, base in map(str.split, BASES.split(",")):
        assert verb_base(word, lemma) == base, word


@pytest.mark.parametrize(
    ("parsed", "expected"),
    [
        ("man; bull [bucking] | man fall off of bull", "man [falling]"),
        ("man; hat [red] | man wear hat", "man [wearing]"),
        ("car; tree | car parked beside tree", "car [parked]"),
        ("kite; string | kite made of string", "kite [made]"),
        ("man; sea | man kite surf in sea", "man [kite surfing]"),
        ("girl; flag | girl swing flag", "girl [swinging]"),
        ("dog [running]; park | dog run in park", "dog [running]"),
        ("man; ball; dog | man hold ball; man hold dog", "man [holding]"),
        (
            "man [old, tall, thin]; cup; chair | man hold cup; man sit on chair",
            "man [old, tall, thin, holding]",  # no more than four
        ),
        ("glass [full]; water | glass full of water", "glass [full]"),
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
