"""English verb forms."""

from manymatch.scene_graphs.verbs import participle_base, present_participle, verb_base

PARTICIPLES = """
    run running, sit sitting, ride riding, lie lying, open opening, play playing, sleep sleeping,
    see seeing, fix fixing, be being, hop hopping, quit quitting
"""
BASES = """
    riding rid ride, rides rid ride, staring star stare, striped strip stripe,
    stripping strip strip, stars star star, walking walk walk, playing play play, ran run run
"""


def test_present_participle():
    for base, participle in map(str.split, PARTICIPLES.split(",")):
        assert present_participle(base) == participle


def test_participle_base():
    for base in ("ride", "run", "sing", "serve", "dance", "juggle", "roll", "surf", "advertise"):
        assert participle_base(present_participle(base)) == base


def test_verb_base():
    for word, lemma, base in map(str.split, BASES.split(",")):
        assert verb_base(word, lemma) == base, word
