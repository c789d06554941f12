"""What methods cost: a table, and the time of a text query over the size of the gallery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from manymatch.reporting.blocks import Block, Grid, Heading, Note, View
from manymatch.reporting.chart import Chart, LogAxis, Series, line_chart
from manymatch.reporting.costs import PARTS_OF_QUERY, number, sizes, source, table
from manymatch.reporting.published_costs import Published, published
from manymatch.results.all_results import AllResults
from manymatch.results.costs import Cost, Costs

_NOTE = Note(
    "Published costs are from a paper, on its own data and hardware. Untrained: the "
    "cross-attention of SCAN (image-to-text, average pooling) on this data, with a training step "
    "of 128 pairs as in SwAMP's table; if images are only pixels, each image has 36 artificial "
    "regions. The times of a step and a query are medians. If ranking all images of the test "
    "takes over a minute, SCAN ranks a part of them, and “scaled” marks a time that was scaled "
    "up to all pairs. A query is parsed (for methods that read scene graphs), encoded, and "
    "compared with the images. DivE counts SCAN's similarity as about 80 times its own."
)

Points = list[tuple[int, float]]
"""Numbers of images with milliseconds."""


class QueryCharts(NamedTuple):
    """The charts of the methods that were measured here, and of the papers' methods."""

    ours: list[Chart]
    theirs: list[Chart]


def section(results: AllResults) -> View | None:
    blocks: list[Block] = []
    for costs in results.costs:
        charts = query_charts(costs)
        blocks += [
            Note(f"What the methods cost on {sizes(costs)}, and what the papers print."),
            table(costs),
            _NOTE,
            Heading("A text query over the number of images", "milliseconds, measured here"),
            Grid(charts.ours, "small"),
            Heading("A text query over the number of images", "milliseconds, published"),
            Grid(charts.theirs, "small"),
        ]
    return View("Efficiency", "Efficiency", blocks) if blocks else None


def query_charts(costs: Costs) -> QueryCharts:
    """Milliseconds over images, all charts on the same logarithmic scales."""
    galleries = [images for cost in costs.rows for images in cost.query.search]
    ours = {cost.name: _our_parts(cost) for cost in costs.rows}
    theirs = {
        f"{entry.method} ({source(entry)})": parts
        for entry in published()
        if (parts := _their_parts(entry, min(galleries), max(galleries)))
    }
    lines = [line for parts in (*ours.values(), *theirs.values()) for line in parts.values()]
    points = [point for line in lines for point in line]
    axes = LogAxis([images for images, _ in points]), LogAxis([time for _, time in points])
    return QueryCharts(_charts(ours.items(), axes), _charts(theirs.items(), axes))


def _our_parts(cost: Cost) -> dict[str, Points]:
    """The points of each part of a query. Parsing and encoding do not depend on the gallery."""
    query = cost.query
    galleries = sorted(query.search)
    fixed = {"parse": query.parse, "encode": query.encode}
    parts = {
        name: [(images, time) for images in galleries]
        for name, time in fixed.items()
        if time is not None
    }
    return parts | {
        "search": [(images, query.search[images]) for images in galleries],
        "query": [(images, query.total(images)) for images in galleries],
    }


def _their_parts(entry: Published, smallest: int, largest: int) -> dict[str, Points]:
    parts: dict[str, Points] = {}
    for fact in entry.facts:
        if fact.measure in PARTS_OF_QUERY:
            ends = dict.fromkeys(fact.galleries or (smallest, largest))
            parts.setdefault(fact.measure, []).extend((n, 1000 * fact.value) for n in ends)
    return parts


def _charts(
    methods: Iterable[tuple[str, dict[str, Points]]], axes: tuple[LogAxis, LogAxis]
) -> list[Chart]:
    return [
        line_chart(
            title,
            [_series(name, parts[name]) for name in PARTS_OF_QUERY if name in parts],
            "images",
            x_axis=axes[0],
            y_axis=axes[1],
        )
        for title, parts in methods
    ]


def _series(name: str, points: Points) -> Series:
    ends = dict.fromkeys(number(time, digits=2) for _, time in (points[0], points[-1]))
    labels = [f"{images:,} images: {number(time)} ms" for images, time in points]
    summary = f"{' to '.join(ends)} ms"
    return Series(name, PARTS_OF_QUERY.index(name), points, summary, labels)
