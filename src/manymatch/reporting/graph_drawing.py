"""The layout of a scene graph's drawing.

Objects stand in one row, in the order of the caption. Each relation leaves the top of its subject,
runs along a lane above the row, and ends at the top of its object. Lines rise only above boxes, and
labels stand only in gaps between boxes, one label for each lane. The gaps are as wide as their
labels. Therefore no text overlaps another text or a line, in any graph.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from manymatch.results.retrieval import Graph, Relation

NAME_SIZE, SMALL_SIZE = 15, 12
"""Font sizes in px: names of objects; attributes and labels of relations."""

_LONGEST = 32
"""The most characters of a phrase that are drawn. The description has the whole phrase."""

_PADDING, _GAP, _PORT, _MARGIN = 12, 26, 16, 2
_LANE, _CLEARANCE, _LINE, _CORNER = 25, 24, 17, 7


@dataclass(frozen=True)
class Box:
    """An object with its name and its attributes, in px from the upper left corner."""

    x: float
    y: float
    width: float
    height: float
    name: str
    attributes: tuple[tuple[float, str], ...]
    """Baseline and text of each line."""


@dataclass(frozen=True)
class Arrow:
    """A relation: SVG paths of line and head, and a label that is centred on `x`."""

    line: str
    head: str
    label: str
    x: float
    y: float


@dataclass(frozen=True)
class Drawing:
    """A scene graph as shapes, and its description in words."""

    width: float
    height: float
    boxes: list[Box]
    arrows: list[Arrow]
    description: str


def draw(graph: Graph) -> Drawing:
    """The drawing of a graph with at least one object."""
    edges = [edge for edge in graph.relations if edge.subject != edge.object]
    lanes = _lanes(edges)
    ports = _ports(edges, lanes)
    lines = [_lines(graph, index) for index in range(len(graph.objects))]
    widths = []
    for index, name in enumerate(graph.objects):
        texts = [text_width(_short(name), NAME_SIZE * 1.08)]  # set in bold
        texts += [text_width(line, SMALL_SIZE) for line in lines[index]]
        widths.append(max(max(texts) + 2 * _PADDING, _PORT * (len(ports[index]) + 1)))
    gaps = [float(_GAP)] * (len(graph.objects) - 1)
    for edge in edges:
        room = text_width(_short(edge.label), SMALL_SIZE) + _PADDING
        gaps[_gap_of(edge)] = max(gaps[_gap_of(edge)], room)
    steps = [width + gap for width, gap in zip(widths, [*gaps, 0.0], strict=True)]
    *left, end = accumulate(steps, initial=float(_MARGIN))
    top = _CLEARANCE + _LANE * (max(lanes, default=-1) + 1) if edges else _MARGIN
    boxes = [
        _box(_short(name), lines[index], left[index], widths[index], top)
        for index, name in enumerate(graph.objects)
    ]

    def port(column: int, edge: int) -> float:
        """x of the end of relation `edge` at the box of `column`."""
        share = (ports[column].index(edge) + 1) / (len(ports[column]) + 1)
        return left[column] + share * widths[column]

    arrows = []
    for index, edge in enumerate(edges):
        ends = port(edge.subject, index), port(edge.object, index)
        gap = _gap_of(edge)
        centre = left[gap] + widths[gap] + gaps[gap] / 2
        arrows.append(_arrow(_short(edge.label), ends, lanes[index], centre, top))
    height = top + max(box.height for box in boxes) + _MARGIN
    return Drawing(end + _MARGIN, height, boxes, arrows, describe(graph))


def describe(graph: Graph) -> str:
    """The graph in words: "dog (brown, wet), ball; dog chasing ball"."""
    objects = [
        f"{name} ({', '.join(attributes)})" if attributes else name
        for name, attributes in zip(graph.objects, graph.attributes, strict=True)
    ]
    relations = [
        f"{graph.objects[edge.subject]} {edge.label} {graph.objects[edge.object]}"
        for edge in graph.relations
    ]
    return "; ".join([", ".join(objects), *relations])


def text_width(text: str, size: float) -> float:
    """An upper bound, in px, of the width of a text in any common sans serif font."""
    widths = {**dict.fromkeys("fijlrt.,;:'|()-! ", 0.43), **dict.fromkeys("mwMW@%", 1.0)}
    return size * sum(
        1.1
        if unicodedata.east_asian_width(letter) in "WF"
        else widths.get(letter, 0.7 if letter.isupper() else 0.65)
        if letter.isascii()
        else 1.0
        for letter in text
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _span(edge: Relation) -> tuple[int, int]:
    return min(edge.subject, edge.object), max(edge.subject, edge.object)


def _lanes(edges: Sequence[Relation]) -> list[int]:
    """The lane of each relation (0: the lowest). Short relations come first; two relations of one
    lane do not overlap."""
    lanes = [0] * len(edges)
    taken: list[list[tuple[int, int]]] = []
    spans_of = list(map(_span, edges))
    for i, (left, right) in sorted(enumerate(spans_of), key=lambda span: span[1][1] - span[1][0]):
        free = [all(right <= a or b <= left for a, b in spans) for spans in taken]
        lanes[i] = free.index(True) if True in free else len(taken)
        if lanes[i] == len(taken):
            taken.append([])
        taken[lanes[i]].append((left, right))
    return lanes


def _lines(graph: Graph, index: int) -> list[str]:
    """The attributes of an object, and its relations to itself, which are not drawn as arrows."""
    loops = [edge for edge in graph.relations if edge.subject == edge.object == index]
    return [*map(_short, graph.attributes[index]), *(f"↻ {_short(edge.label)}" for edge in loops)]


def _ports(edges: Sequence[Relation], lanes: list[int]) -> dict[int, list[int]]:
    """The relations at each object from left to right, so that lines nest and do not cross."""
    ends: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for i, edge in enumerate(edges):
        left, right = _span(edge)
        ends[left].append((1, -lanes[i], i))
        ends[right].append((0, lanes[i], i))
    return defaultdict(list, {k: [i for *_, i in sorted(v)] for k, v in ends.items()})


def _gap_of(edge: Relation) -> int:
    """The gap that holds a relation's label: the middle gap below the relation."""
    left, right = _span(edge)
    return (left + right - 1) // 2


def _box(name: str, lines: Sequence[str], x: float, width: float, y: float) -> Box:
    first = y + _PADDING + NAME_SIZE + _LINE
    height = 2 * _PADDING + NAME_SIZE + _LINE * len(lines)
    attributes = tuple((first + i * _LINE, line) for i, line in enumerate(lines))
    return Box(x, y, width, height, name, attributes)


def _arrow(label: str, ends: tuple[float, float], lane: int, centre: float, top: float) -> Arrow:
    start, end = ends
    y = top - _CLEARANCE - lane * _LANE
    turn = _CORNER if start < end else -_CORNER
    line = (
        f"M{start:.1f} {top:.1f}V{y + _CORNER:.1f}Q{start:.1f} {y:.1f} {start + turn:.1f} {y:.1f}"
        f"H{end - turn:.1f}Q{end:.1f} {y:.1f} {end:.1f} {y + _CORNER:.1f}V{top - 7:.1f}"
    )
    head = f"M{end - 4.5:.1f} {top - 9:.1f}L{end:.1f} {top - 1:.1f}L{end + 4.5:.1f} {top - 9:.1f}Z"
    return Arrow(line, head, label, centre, y - 6)
