"""The drawing of a scene graph: whatever the graph, no text meets another and no line a text."""

import itertools
import random
import re

import pytest

from manymatch.reporting.graph_drawing import NAME_SIZE, SMALL_SIZE, draw, text_width
from manymatch.results.retrieval import Graph, Relation

WORDS = ["dog", "two children", "mmmmWWWW", "x", "a very long phrase that goes on and on", "子供"]


def random_graph(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 13)
    objects = tuple(rng.choice(WORDS) for _ in range(count))
    attributes = tuple(tuple(rng.choices(WORDS, k=rng.randint(0, 4))) for _ in range(count))
    relations = tuple(
        Relation(subject=rng.randrange(count), label=rng.choice(WORDS), object=rng.randrange(count))
        for _ in range(rng.randint(0, 13))
    )
    return Graph(objects=objects, names=objects, attributes=attributes, relations=relations)


def texts(drawing):
    """Left, top, right, bottom of every text."""
    areas = [_area(arrow.label, arrow.x, arrow.y, SMALL_SIZE) for arrow in drawing.arrows]
    for box in drawing.boxes:
        centre = box.x + box.width / 2
        areas.append(_area(box.name, centre, box.y + 24, NAME_SIZE))
        areas += [_area(text, centre, y, SMALL_SIZE) for y, text in box.attributes]
    return areas


def _area(text, centre, baseline, size):
    half = text_width(text, size) / 2
    return centre - half, baseline - 0.8 * size, centre + half, baseline + 0.22 * size


def strokes(drawing):
    """The straight parts of every line: up, along, down."""
    values = []
    for arrow in drawing.arrows:
        numbers = [float(number) for number in re.findall(r"[-\d.]+", arrow.line)]
        start, top, y, end = numbers[0], numbers[1], numbers[4], numbers[8]
        values += [(start, y, start, top), (min(start, end), y, max(start, end), y)]
        values.append((end, y, end, top))
    return values


def meet(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("seed", range(30))
def test_texts_meet_neither_texts_nor_lines_and_lines_never_lie_on_each_other(seed):
    drawing = draw(random_graph(seed))
    areas, lines = texts(drawing), strokes(drawing)
    assert not [pair for pair in itertools.combinations(areas, 2) if meet(*pair)]
    assert not [(a, b) for a in areas for b in lines if meet(a, b)]
    for left, top, right, bottom in areas:
        assert left >= 0 and top >= 0
        assert right <= drawing.width and bottom <= drawing.height
    for a, b in itertools.combinations([one for one in lines if one[1] == one[3]], 2):
        assert a[1] != b[1] or a[2] <= b[0] or b[2] <= a[0]
