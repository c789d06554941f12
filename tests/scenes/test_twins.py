"""Twins differ in one binding, and their captions express the difference."""

import hashlib
import json
from collections import Counter
from random import Random

import pytest

from manymatch.scenes.twins import CONTRASTS, compose_twins, holds, pair


@pytest.fixture(scope="module")
def twins():
    return [compose_twins(Random(f"twins/{number}")) for number in range(60)]


def bag(sentence):
    words = sentence.text.lower().replace(",", "").replace(".", "").split()
    return Counter("a" if word == "an" else word for word in words)


def test_captions_express_the_difference_and_bags_of_words_do_not(twins):
    seen = set()
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
            values = [[o[attribute] for o in g["objects"]] for g in (one, other)]
            assert Counter(values[0]) == Counter(values[1])
            seen |= {attribute} if values[0] != values[1] else set()
    assert seen == {"kind", "colour", "size", "state"}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 20)])
def test_the_share_of_twins(share, expected):
    pictures = [picture for number in range(20) for picture in pair(0, "train", number, share)]
    assert sum(picture.twin for picture in pictures) == expected


def test_the_data_set_stays_as_it_is():
    """Scenes, boxes, captions, forms and graphs of forty images."""
    digest = hashlib.sha256()
    for picture in (picture for number in range(20) for picture in pair(0, "train", number, 0.5)):
        told = [(s.text, s.form.to_dict(), s.graph.to_dict()) for s in picture.captions]
        boxes = [tuple(thing.box) for thing in picture.scene.things]
        digest.update(json.dumps([picture.scene.graph(), boxes, told, picture.twin]).encode())
    assert digest.hexdigest() == "efa8ad5dd850987a08a612ca7deba153eebada966058e2787c0203bd7baeedcc"
