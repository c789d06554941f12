"""English verb forms."""

from __future__ import annotations

import pytest

from manymatch.scene_graphs.inflection import present_participle, verb_base


@pytest.mark.parametrize(
    ("base", "participle"),
    [
        ("run", "running"),
        ("sit", "sitting"),
        ("ride", "riding"),
        ("lie", "lying"),
        ("open", "opening"),
        ("play", "playing"),
        ("sleep", "sleeping"),
        ("see", "seeing"),
        ("fix", "fixing"),
        ("be", "being"),
        ("hop", "hopping"),
        ("quit", "quitting"),
    ],
)
def test_present_participle(base: str, participle: str) -> None:
    assert present_participle(base) == participle


@pytest.mark.parametrize(
    ("word", "lemma", "base"),
    [
        ("riding", "rid", "ride"),
        ("rides", "rid", "ride"),
        ("staring", "star", "stare"),
        ("striped", "strip", "stripe"),
        ("stripping", "strip", "strip"),
        ("stars", "star", "star"),
        ("walking", "walk", "walk"),
        ("playing", "play", "play"),
        ("ran", "run", "run"),
    ],
)
def test_verb_base(word: str, lemma: str, base: str) -> None:
    assert verb_base(word, lemma) == base
