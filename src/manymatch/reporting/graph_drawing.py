"""The layout of a scene graph's drawing.

Objects stand in one row, in the order of the caption. Each relation leaves the top of its subject,
runs along a lane above the row, and ends at the top of its object. Lines rise only above boxes, and
labels stand only in gaps between boxes, one label for each lane. The gaps are as wide as their
labels. Therefore no text overlaps another text or a line, in any graph.
"""

from __future__ import annotations

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
    columns = _Columns(graph, edges, lanes)
    top = _CLEARANCE + _LANE * (max(lanes, default=-1) + 1) if edges else _MARGIN
    boxes = [_box(graph, i, columns.left[i], columns.width[i], top) for i in columns.range]
    height = max(box.height for box in boxes)
    return Drawing(
        width=columns.total,
        height=top + height + _MARGIN,
        boxes=boxes,
        arrows=[_arrow(edges[i], i, lanes[i], columns, top) for i in range(len(edges))],
        description=describe(graph),
    )


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
    return size * sum(_em(letter) for letter in text)


def _em(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    if letter in "fijlrt.,;:'|()-! ":
        return 0.43
    return 1.0 if letter in "mwMW@%" or not letter.isascii() else 0.7 if letter.isupper() else 0.65


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


class _Columns:
    """The left side and the width of each object's box, and the ends of lines at its top."""

    def __init__(self, graph: Graph, edges: Sequence[Relation], lanes: list[int]) -> None:
        self.range = range(len(graph.objects))
        self._ports = _ports(edges, lanes)
        self.width = [self._box_width(graph, i) for i in self.range]
        self.gap = _gaps(edges, len(graph.objects) - 1)
        steps = [width + gap for width, gap in zip(self.width, [*self.gap, 0.0], strict=True)]
        *self.left, end = accumulate(steps, initial=float(_MARGIN))
        self.total = end + _MARGIN

    def _box_width(self, graph: Graph, index: int) -> float:
        texts = [text_width(_short(graph.objects[index]), NAME_SIZE * 1.08)]  # set in bold
        texts += [text_width(line, SMALL_SIZE) for line in _lines(graph, index)]
        return max(max(texts) + 2 * _PADDING, _PORT * (len(self._ports[index]) + 1))

    def port(self, column: int, edge: int) -> float:
        """x of the end of relation `edge` at the box of `column`."""
        ports = self._ports[column]
        share = (ports.index(edge) + 1) / (len(ports) + 1)
        return self.left[column] + share * self.width[column]

    def gap_centre(self, gap: int) -> float:
        return self.left[gap] + self.width[gap] + self.gap[gap] / 2


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


def _gaps(edges: Sequence[Relation], count: int) -> list[float]:
    widths = [float(_GAP)] * count
    for edge in edges:
        room = text_width(_short(edge.label), SMALL_SIZE) + _PADDING
        widths[_gap_of(edge)] = max(widths[_gap_of(edge)], room)
    return widths


def _box(graph: Graph, index: int, x: float, width: float, y: float) -> Box:
    lines = _lines(graph, index)
    first = y + _PADDING + NAME_SIZE + _LINE
    return Box(
        x=x,
        y=y,
        width=width,
        height=2 * _PADDING + NAME_SIZE + _LINE * len(lines),
        name=_short(graph.objects[index]),
        attributes=tuple((first + i * _LINE, line) for i, line in enumerate(lines)),
    )


def _arrow(edge: Relation, index: int, lane: int, columns: _Columns, top: float) -> Arrow:
    start, end = columns.port(edge.subject, index), columns.port(edge.object, index)
    y = top - _CLEARANCE - lane * _LANE
    turn = _CORNER if start < end else -_CORNER
    line = (
        f"M{start:.1f} {top:.1f}V{y + _CORNER:.1f}Q{start:.1f} {y:.1f} {start + turn:.1f} {y:.1f}"
        f"H{end - turn:.1f}Q{end:.1f} {y:.1f} {end:.1f} {y + _CORNER:.1f}V{top - 7:.1f}"
    )
    head = f"M{end - 4.5:.1f} {top - 9:.1f}L{end:.1f} {top - 1:.1f}L{end + 4.5:.1f} {top - 9:.1f}Z"
    return Arrow(line, head, _short(edge.label), columns.gap_centre(_gap_of(edge)), y - 6)
