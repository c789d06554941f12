"""What a text query takes, over the size of the gallery: a chart a method, all on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.reporting.charts import Chart, Line, Tick
from manymatch.reporting.costs import Table, number, place, sizes, table
from manymatch.reporting.published_costs import Published, published
from manymatch.results.costs import Cost, Costs

_PARTS = ("parse", "encode", "search", "query")
"""In the order of their styles; `query` is the whole."""

Points = list[tuple[int, float]]
Parts = dict[str, Points]
"""Of a method: (images, milliseconds) of each part."""


@dataclass(frozen=True)
class QueryCharts:
    """Those measured here, and the papers'."""

    ours: list[Chart]
    theirs: list[Chart]


@dataclass(frozen=True)
class CostsView:
    """What the page shows of a data set."""

    dataset: str
    sizes: str
    table: Table
    charts: QueryCharts


def view(measured: Sequence[Costs], dataset: str) -> CostsView | None:
    """None if nothing was measured on `dataset`."""
    for each in measured:
        if each.dataset == dataset:
            return CostsView(dataset, sizes(each), table(each), query_charts(each))
    return None


class LogAxis:
    """From one power of ten to another around all `values`, all above 0; a tick at each or, past
    five, at every second."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.floor(math.log10(min(values)) + 1e-9)
        self.high = max(math.ceil(math.log10(max(values)) - 1e-9), self.low + 1)

    def at(self, value: float) -> float:
        """Percent of the way along the axis."""
        return 100 * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        powers = range(self.low, self.high + 1, 1 if self.high - self.low < 4 else 2)
        return [Tick(_short(10.0**power), round(self.at(10.0**power), 2)) for power in powers]


def query_charts(costs: Costs) -> QueryCharts:
    """Milliseconds over images, both logarithmic."""
    galleries = [images for cost in costs.rows for images in cost.query.search]
    ours = {cost.name: _ours(cost) for cost in costs.rows}
    theirs = {
        f"{each.method} ({place(each)})": parts
        for each in published()
        if (parts := _theirs(each, min(galleries), max(galleries)))
    }
    every = [point for parts in (*ours.values(), *theirs.values()) for point in _points(parts)]
    x_axis = LogAxis([images for images, _ in every])
    y_axis = LogAxis([took for _, took in every])
    return QueryCharts(
        [_chart(name, parts, x_axis, y_axis) for name, parts in ours.items()],
        [_chart(name, parts, x_axis, y_axis) for name, parts in theirs.items()],
    )


def _points(parts: Parts) -> Points:
    return [point for points in parts.values() for point in points]


def _ours(cost: Cost) -> Parts:
    query = cost.query
    search = sorted(query.search.items())
    fixed = {"parse": query.parse, "encode": query.encode}
    parts = {
        name: [(images, took) for images, _ in search]
        for name, took in fixed.items()
        if took is not None
    }
    whole = [(images, query.total(images)) for images, _ in search]
    return parts | {"search": search, "query": whole}


def _theirs(each: Published, smallest: int, largest: int) -> Parts:
    """What does not depend on the gallery is drawn over all of them."""
    parts: Parts = {}
    for fact in each.facts:
        if fact.measure in _PARTS:
            ends = fact.galleries or (smallest, largest)
            points = [(images, 1000 * fact.value) for images in dict.fromkeys(ends)]
            parts.setdefault(fact.measure, []).extend(points)
    return parts


def _chart(title: str, parts: Parts, x_axis: LogAxis, y_axis: LogAxis) -> Chart:
    lines = [_line(name, parts[name], x_axis, y_axis) for name in _PARTS if name in parts]
    y_ticks = [Tick(tick.label, round(100 - tick.at, 2)) for tick in y_axis.ticks()]
    return Chart(title, lines, x_axis.ticks(), y_ticks, unit="images")


def _line(name: str, points: Points, x_axis: LogAxis, y_axis: LogAxis) -> Line:
    places = [(10 * x_axis.at(images), 1000 - 10 * y_axis.at(took)) for images, took in points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = [
        (f"{name}, {images:,} images: {number(took)} ms", round(x, 1), round(y, 1))
        for (images, took), (x, y) in zip(points, places, strict=True)
    ]
    first, last = number(points[0][1], digits=2), number(points[-1][1], digits=2)
    summary = f"{first} ms" if first == last else f"{first} to {last} ms"
    return Line(name, _PARTS.index(name), path, dots, summary)


def _short(value: float) -> str:
    """10000 as "10K"."""
    for unit, size in (("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
