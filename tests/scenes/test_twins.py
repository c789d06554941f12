"""Twins differ in one binding, and their captions express the difference."""

from collections import Counter
from random import Random

import pytest

from manymatch.scenes.compose import allowed, compose
from manymatch.scenes.twins import CONTRASTS, compose_twins, exchange, holds, pair
from manymatch.scenes.world import Blueprint, Spec, Spot, Tie


@pytest.fixture(scope="module")
def twins():
    return [compose_twins(Random(f"twins/{number}")) for number in range(60)]


def bag(sentence):
    words = sentence.text.lower().replace(",", "").replace(".", "").split()
    return Counter("a" if word == "an" else word for word in words)


def test_captions_express_the_difference_and_bags_of_words_do_not(twins):
    for both in twins:
        for own, other in ((0, 1), (1, 0)):
            assert len(both.contrasts[own]) == CONTRASTS
            for sentence in both.contrasts[own]:
                assert holds(sentence, both.scenes[own])
                assert not holds(sentence, both.scenes[other])
        for one, other in zip(*both.contrasts, strict=True):
            assert one.text != other.text and bag(one) == bag(other)
        one, other = (scene.graph() for scene in both.scenes)
        assert one != other and one["background"] == other["background"]
        for attribute in ("kind", "colour", "size", "state"):
            values = [Counter(o[attribute] for o in g["objects"]) for g in (one, other)]
            assert values[0] == values[1]


def test_all_kinds_of_bindings_are_exchanged(twins):
    seen = set()
    for both in twins:
        pairs = list(zip(*(scene.graph()["objects"] for scene in both.scenes), strict=True))
        for name in ("colour", "size", "state", "kind"):
            if any(a[name] != b[name] for a, b in pairs):
                seen.add(name)
    assert seen == {"colour", "size", "state", "kind"}


def test_exchanging_a_man_and_a_dog_reverses_the_chase_and_moves_the_clothes():
    man = Spec("man", state="running")
    shirt = Spec("shirt", "red")
    dog = Spec("dog", "brown", "small", "running")
    blueprint = Blueprint(
        "park",
        (man, shirt, dog),
        (Tie(0, "wear", 1), Tie(0, "chase", 2)),
        (Spot(0, "front", 0.5),),
        0,
    )
    other = exchange(blueprint, 0, 2, "kind")
    assert [spec.kind for spec in other.specs] == ["dog", "shirt", "man"]
    assert set(other.ties) == {Tie(2, "wear", 1), Tie(0, "chase", 2)}
    assert allowed(other)


def test_two_garments_on_one_boy_are_refused():
    boy, shirt, hat = Spec("boy", state="standing"), Spec("shirt", "red"), Spec("hat", "blue")
    dressed = Blueprint(
        "park",
        (boy, shirt, hat, boy, shirt, hat),
        tuple(Tie(who, "wear", what) for who, what in ((0, 1), (0, 2), (3, 4), (3, 5))),
        (Spot(0, "front", 0.3), Spot(3, "front", 0.3)),
        0,
    )
    assert allowed(dressed)
    assert not allowed(exchange(dressed, 1, 5, "kind"))


def test_states_that_a_kind_cannot_have_are_refused():
    basket, cat = Spec("basket", "red", "large", "empty"), Spec("cat", "blue", "small", "sitting")
    inside = Blueprint("park", (basket, cat), (Tie(1, "in", 0),), (Spot(0, "front", 0.5),), 0)
    assert allowed(inside)
    assert not allowed(exchange(inside, 0, 1, "state"))


def test_exchanging_twice_gives_the_first_back():
    blueprint, _ = compose(Random("twice"))
    for attribute in ("colour", "size", "state", "kind"):
        once = exchange(blueprint, 0, 1, attribute)
        assert exchange(once, 0, 1, attribute) == blueprint


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 20)])
def test_the_share_of_twins(share, expected):
    pictures = [picture for number in range(20) for picture in pair(0, "train", number, share)]
    assert sum(picture.twin for picture in pictures) == expected
