"""Experiments that vary a setting: tables, charts, and which elements of sets match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manymatch.reporting import ablations
from manymatch.reporting.ablations import MEASURES, Measure, estimate
from manymatch.reporting.attention_drawing import PAIRS_NOTE, pair_heats
from manymatch.reporting.blocks import Block, Folded, Grid, Heading, Note, View
from manymatch.reporting.chart import (
    STYLES,
    CategoryAxis,
    Chart,
    DotChart,
    Series,
    dot_chart,
    line_chart,
)
from manymatch.reporting.estimates import Estimate
from manymatch.reporting.published import tables_beside
from manymatch.results.ablations import Ablation, AblationPoint, value_text
from manymatch.results.all_results import AllResults

_DRAWN = [
    measure
    for measure in MEASURES
    if measure.key in ("rsum", "multi.i2t.map_at_r", "multi.t2i.map_at_r")
]
_FEWEST = 3
"""The number of values from which on a numeric setting is drawn as a line."""


def section(results: AllResults) -> View | None:
    """All experiments on a data set; those that compare whole methods come first."""
    if not results.ablations:
        return None
    note = Note(
        "Mean ± standard deviation over the seeds, if there are several. The best mean of a column "
        "is underlined. The charts place settings at equal distances, whatever their values."
    )
    blocks = [block for ablation in results.ablations for block in _blocks(ablation)]
    return View("Experiments", "Experiments", [note, *blocks])


def methods(results: AllResults) -> View | None:
    """The tables of whole methods alone; `section` has the charts."""
    compared = [ablation for ablation in results.ablations if ablation.compares_methods]
    blocks = [block for ablation in compared for block in ablations.summary(ablation)]
    return View("Methods over several seeds", "Seeds", blocks) if blocks else None


def _blocks(ablation: Ablation) -> list[Block]:
    blocks = ablations.summary(ablation, f"experiment-{ablation.name}")
    blocks += [Folded(table.title, [table], "published") for table in tables_beside(ablation.name)]
    blocks.append(Grid(line_charts(ablation) or dot_charts(ablation)))
    heats = [
        Grid([Heading(point.label), *pair_heats(pairs, point.label)], "row")
        for point in ablations.ranked_points(ablation)
        if (pairs := point.runs[0].pairs) is not None
    ]
    if heats:
        blocks.append(Folded("Which elements match", [Note(PAIRS_NOTE), Grid(heats, "wide")]))
    return blocks


def line_charts(ablation: Ablation) -> list[Chart]:
    """A chart for each drawn measure over the numeric setting with most values. None if no setting
    is a number at every point and has enough values."""
    key = _numeric_key(ablation)
    if key is None:
        return []
    charts = []
    for measure in _DRAWN:
        lines: dict[str, list[tuple[float, Estimate]]] = {}
        for point, value in _estimates(ablation.points, measure):
            name = _other_settings(point, key) or ablation.preset or ""
            lines.setdefault(name, []).append((point.settings[key], value))
        if lines:
            series = [
                _series(name, number % STYLES, sorted(points, key=lambda pair: pair[0]))
                for number, (name, points) in enumerate(lines.items())
            ]
            axis = CategoryAxis([point.settings[key] for point in ablation.points])
            charts.append(
                line_chart(measure.title, series, key, x_axis=axis, legend=len(series) > 1)
            )
    return charts


def dot_charts(ablation: Ablation) -> list[DotChart]:
    """A chart for each drawn measure, with a row for each point in the order of the table."""
    points = ablations.ranked_points(ablation)
    return [
        dot_chart(
            measure.title,
            [
                (
                    " · ".join(ablations.point_names(ablation, point)),
                    point.label,
                    value.text(measure.digits),
                    value.mean,
                    value.deviation or 0.0,
                )
                for point, value in values
            ],
        )
        for measure in _DRAWN
        if (values := _estimates(points, measure))
    ]


def _estimates(
    points: Sequence[AblationPoint], measure: Measure
) -> list[tuple[AblationPoint, Estimate]]:
    pairs = [(point, estimate(point, measure.key)) for point in points]
    return [(point, value) for point, value in pairs if value is not None]


def _numeric_key(ablation: Ablation) -> str | None:
    columns = {key: [point.settings[key] for point in ablation.points] for key in ablation.keys}
    counts = {
        key: len(set(values)) for key, values in columns.items() if all(map(_is_number, values))
    }
    key = max(counts, key=lambda key: counts[key], default="")
    return key if counts.get(key, 0) >= _FEWEST else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _other_settings(point: AblationPoint, key: str) -> str:
    """The settings that distinguish one line from another."""
    others = {name: value for name, value in point.settings.items() if name != key}
    return ", ".join(f"{name}={value_text(value)}" for name, value in others.items())


def _series(name: str, style: int, points: Sequence[tuple[float, Estimate]]) -> Series:
    best, value = max(points, key=lambda pair: pair[1].mean)
    return Series(
        name,
        style,
        [(setting, value.mean) for setting, value in points],
        f"best {value.text()} at {best:g}",
        [f"{setting:g}: {value.text()}" for setting, value in points],
        [value.deviation or 0.0 for _, value in points],
    )
