"""Objects of scenes: kinds, positions, drawings and relations."""

import csv
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import Image, ImageDraw

from manymatch.scenes.compose import compose
from manymatch.scenes.drawing import figures
from manymatch.scenes.drawing import image as drawing
from manymatch.scenes.drawing.pen import Pen
from manymatch.scenes.kinds import BACKGROUNDS, CLOTHES, COLOURS, KINDS, PEOPLE, SIZES
from manymatch.scenes.world import INVERSES, Box, Spec, Thing, Tie, all_relations

DRAWN = [name for name in KINDS if name not in (*PEOPLE, *CLOTHES.values())]


@pytest.fixture(scope="module")
def scenes():
    return [compose(Random(f"world/{number}"))[1] for number in range(300)]


def test_the_world_is_rich_enough(scenes):
    things = [thing.spec for scene in scenes for thing in scene.things]
    assert {spec.kind for spec in things} == set(KINDS)
    assert {spec.colour for spec in things} == {*COLOURS, None}
    assert {spec.size for spec in things} == {*SIZES, None}
    assert len({tie.relation for scene in scenes for tie in scene.relations}) == 20
    assert {scene.background for scene in scenes} == set(BACKGROUNDS)


def test_everything_lies_in_the_picture_and_relations_have_their_inverses(scenes):
    for scene in scenes:
        for thing in scene.things:
            assert 0 <= thing.box.x1 < thing.box.x2 <= 1
            assert 0 <= thing.box.y1 < thing.box.y2 <= 1
        for tie in scene.relations:
            if tie.relation in INVERSES:
                assert Tie(tie.object, INVERSES[tie.relation], tie.subject) in scene.relations


# --- each relation by its rule --------------------------------------------------------------


def thing(x1, y1, x2, y2, kind="box", row="front", facing=1, state=None):
    return Thing(Spec(kind, state=state, facing=facing), Box(x1, y1, x2, y2), row)


def between(a, b, ties=()):
    """Return the names of the relations from a to b."""
    result = all_relations([a, b], ties)
    return {tie.relation for tie in result if (tie.subject, tie.object) == (0, 1)}


LEFT, RIGHT = thing(0.1, 0.8, 0.3, 0.9), thing(0.6, 0.8, 0.8, 0.9)


BACK = thing(0.1, 0.5, 0.4, 0.7, row="back")
FLYING = thing(0.15, 0.1, 0.25, 0.2, "bird", row=None)
MAN, HAT = thing(0.1, 0.6, 0.3, 0.9, "man"), thing(0.1, 0.55, 0.3, 0.61, "hat", row=None)
RIDER = thing(0.1, 0.6, 0.3, 0.85, "man", row=None)
NEAR = thing(0.36, 0.8, 0.5, 0.9)


def dog(facing, state):
    return thing(0.1, 0.8, 0.3, 0.9, "dog", facing=facing, state=state)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (LEFT, RIGHT, {"left of"}),
        (RIGHT, LEFT, {"right of"}),
        (LEFT, thing(0.25, 0.8, 0.5, 0.9), set()),
        (FLYING, LEFT, {"above"}),
        (LEFT, FLYING, {"below"}),
        (thing(0.29, 0.1, 0.5, 0.2, row=None), LEFT, set()),  # hardly over it
        (thing(0.15, 0.5, 0.25, 0.85, row=None), LEFT, set()),  # reaches into it
        (LEFT, BACK, {"in front of"}),
        (BACK, LEFT, {"behind"}),
        (thing(0.35, 0.8, 0.6, 0.9), BACK, set()),  # shares too little with it
        (LEFT, NEAR, {"left of", "next to"}),
        (NEAR, LEFT, {"right of", "next to"}),
        (LEFT, thing(0.40, 0.8, 0.5, 0.9), {"left of"}),
        (LEFT, thing(0.36, 0.5, 0.5, 0.7, row="back"), {"left of"}),
        (dog(1, "standing"), NEAR, {"left of", "next to", "look at"}),
        (dog(-1, "standing"), NEAR, {"left of", "next to"}),
        (dog(1, "sleeping"), NEAR, {"left of", "next to"}),
        (dog(1, "standing"), RIGHT, {"left of"}),
    ],
)
def test_places(a, b, expected):
    assert between(a, b) == expected


def test_actions_imply_what_they_show():
    """Clothes stand in no place to their wearer."""
    horse = thing(0.05, 0.7, 0.35, 0.9, "horse")
    assert between(RIDER, horse, [Tie(0, "ride", 1)]) == {"ride", "on", "with"}
    assert between(HAT, MAN, [Tie(1, "wear", 0)]) == set()
    assert between(MAN, HAT, [Tie(0, "wear", 1)]) == {"wear", "with"}


def test_built_relations_show_in_the_boxes(scenes):
    seen = Counter()
    for scene in scenes:
        for tie in scene.ties:
            a, b = scene.things[tie.subject].box, scene.things[tie.object].box
            seen[tie.relation] += 1
            if tie.relation in ("hold", "in", "wear", "below"):
                assert a.moved(0, 0).overlap_x(b) > 0
            if tie.relation in ("on", "ride"):
                assert b.y1 - 0.01 <= a.y2 <= b.y2 + 0.02 and a.overlap_x(b) > 0.5
            if tie.relation == "chase":
                facing = {scene.things[k].spec.facing for k in tie[::2]}
                assert facing == {1 if a.cx < b.cx else -1}
    assert {"hold", "ride", "wear", "chase", "on", "in", "below", "pull", "push"} <= set(seen)


# --- drawing --------------------------------------------------------------------------------

COLUMNS = ["kind", "state", "shape", "colour", "numbers", "size", "outline"]
NUMBERS = {"rect": {4}, "oval": {4}, "arch": {4}, "disc": {3}, "eye": {3}}
NUMBERS |= {"poly": range(6, 41, 2), "line": range(4, 41, 2), "limb": range(4, 41, 2)}


def test_each_row_of_figures_is_drawn_as_it_says():
    """A misspelt state or shape would leave a stroke out, and no command would say so."""
    text = Path(figures.__file__).with_name("figures.csv").read_text()
    header, *rows = csv.reader(text.splitlines())
    pen = Pen(ImageDraw.Draw(Image.new("RGB", (8, 8))), Box(0, 0, 1, 1), 8)
    assert header == COLUMNS and len(rows) > 200
    for number, row in enumerate(rows, 2):
        kind, state, shape, colour, numbers, size, outline = row
        about, named = KINDS[kind], state.removeprefix("not ")
        assert named in {"", *about.states, *about.extents}, number
        assert len([float(one) for one in numbers.split()]) in NUMBERS[shape], number
        rgb = pen.rgb(tuple(map(int, colour.split())) if " " in colour else colour)
        assert len(rgb) == 3 and 0 <= min(rgb) <= max(rgb) <= 255, number
        assert not size or (float(size) and shape in ("line", "limb", "oval")), number
        assert outline in ("", "no"), number
        assert not outline or shape in ("poly", "rect", "oval", "disc"), number


def drawn(kind, state, colour="red", facing=1):
    image = Image.new("RGB", (96, 96), (205, 225, 205))
    pen = Pen(ImageDraw.Draw(image), Box(0.15, 0.2, 0.85, 0.9), 96, COLOURS[colour], facing < 0)
    drawing._DRAWINGS[kind](pen, kind, state)
    return np.asarray(image).astype(np.int16)


@pytest.mark.parametrize("kind", DRAWN)
def test_states_and_colours_are_seen(kind):
    about = KINDS[kind]
    states = sorted({*about.states, *about.extents}) or [None]
    looks = {(state, colour): drawn(kind, state, colour) for state in states for colour in COLOURS}
    keys = list(looks)
    for k, one in enumerate(keys):
        for other in keys[k + 1 :]:
            if one[0] != other[0] and one[1] != other[1]:
                continue  # another state or another colour, not both
            changed = (np.abs(looks[one] - looks[other]).sum(axis=2) > 30).mean()
            assert changed > 0.005, (one, other)
