"""The drawing of a scene graph: whatever the graph, no text meets another and no line a text."""

import itertools
import random
import re

from manymatch.reporting.graph_drawing import (
    NAME_SIZE,
    SMALL_SIZE,
    draw,
    text_width,
)
from manymatch.results.retrieval import Graph, Relation

WORDS = ["dog", "two children", "mmmmWWWW", "x", "a very long phrase that goes on and on", "子供"]


def edge(subject, label, other):
    return Relation(subject=subject, label=label, object=other)


def graph_of(objects, attributes, relations):
    values = {"objects": objects, "names": objects, "attributes": attributes}
    return Graph.model_validate({**values, "relations": relations})


def random_graph(seed):
    rng = random.Random(seed)
    count = rng.randint(1, 13)
    objects = tuple(rng.choice(WORDS) for _ in range(count))
    attributes = tuple(tuple(rng.choices(WORDS, k=rng.randint(0, 4))) for _ in range(count))
    relations = tuple(
        edge(rng.randrange(count), rng.choice(WORDS), rng.randrange(count))
        for _ in range(rng.randint(0, 13))
    )
    return graph_of(objects, attributes, relations)


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


def test_texts_meet_neither_texts_nor_lines_and_stay_inside():
    for seed in range(60):
        drawing = draw(random_graph(seed))
        areas = texts(drawing)
        assert not [pair for pair in itertools.combinations(areas, 2) if meet(*pair)], seed
        assert not [(a, b) for a in areas for b in strokes(drawing) if meet(a, b)], seed
        for left, top, right, bottom in areas:
            assert left >= 0 and top >= 0, seed
            assert right <= drawing.width and bottom <= drawing.height, seed


def test_lines_never_lie_on_each_other():
    for seed in range(60):
        level = [area for area in strokes(draw(random_graph(seed))) if area[1] == area[3]]
        for a, b in itertools.combinations(level, 2):
            assert a[1] != b[1] or a[2] <= b[0] or b[2] <= a[0], seed


def _graph(*relations):
    names = ("dog", "ball", "fence")
    return graph_of(names, (("brown", "wet"), (), ("old",)), relations)


def test_arrow_points_from_subject_to_object():
    drawing = draw(_graph(edge(2, "behind", 0)))
    (arrow,) = drawing.arrows
    dog, _, fence = drawing.boxes
    start = float(re.findall(r"[-\d.]+", arrow.line)[0])
    tip = float(re.findall(r"[-\d.]+", arrow.head)[2])
    assert fence.x < start < fence.x + fence.width
    assert dog.x < tip < dog.x + dog.width
