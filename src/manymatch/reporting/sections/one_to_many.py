"""One query with many true items: true items of other pairs, ambiguity, and what elements mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from manymatch.reporting.chart import (
    STYLES,
    CategoryAxis,
    Chart,
    DotChart,
    Series,
    dot_charts,
    line_chart,
)
from manymatch.reporting.estimates import Estimate
from manymatch.reporting.page import Section, gallery
from manymatch.reporting.table import Block, Grid, Note
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment, ExperimentMetrics
from manymatch.results.metrics import Metrics
from manymatch.results.runs import WAYS, Direction

Presets = Mapping[str, Sequence[Metrics | ExperimentMetrics]]
"""The metrics of each preset, one for each seed."""

Precisions = dict[tuple[int, int], list[float]]
"""mAP@R with each seed, by the least number of true items and the number of queries."""

_BASELINES = ("vse_infinity", "vsepp")
"""Methods with one vector for each item, the better first."""


def others(results: AllResults) -> list[Block]:
    """R-P of the true items beyond the annotated ones."""
    charts = [
        chart
        for title, presets in _tables(results)
        for way, shown in WAYS.items()
        for chart in _dots(f"{shown}, {title}", presets, f"multi.{way}.others")
    ]
    return _with_note(
        "The annotated items of a query are taken out of its ranking. The query has R other true "
        "items. The value is the percentage of these items among the first R items that are left. "
        "Queries without another true item do not count.",
        charts,
    )


def ambiguity(results: AllResults) -> list[Block]:
    """What sets gain over one vector, by the number of true items of a query."""
    charts = [
        chart
        for title, presets in _tables(results)
        for way, shown in WAYS.items()
        for chart in _gains(f"{shown}, {title}", presets, way)
    ]
    return _with_note(
        "The value is mAP@R of a method of sets minus mAP@R of the baseline with one vector, in "
        "percentage points, for queries with 1, with 2 to 3, with 4 to 7 ... true items. If sets "
        "help because a query has several meanings, the gain grows with the number of true items. "
        "A gain of few queries is uncertain.",
        charts,
    )


def meanings(results: AllResults) -> list[Block]:
    """Whether captions with a common object match the same element of their image."""
    key = "sets.meanings.together"
    charts = [
        chart
        for title, presets in _tables(results)
        for chart in _dots(title, presets, key, f"{key}_by_chance")
    ]
    return _with_note(
        "Pairs of captions of one image that have a common object: how often both captions match "
        "the same element of the image best. The value is the difference, in percentage points, "
        "from the share by chance, with the objects permuted among the captions of the image. "
        "With a value of 0, the elements do not separate what the captions speak of.",
        charts,
    )


def _with_note(note: str, charts: Sequence[Block]) -> list[Block]:
    return [Note(note), Grid(charts)] if charts else []


def _tables(results: AllResults) -> Iterator[tuple[str, Presets]]:
    """The tables of whole methods, then the leaderboard's runs of equal features and galleries,
    each with a title."""
    for experiment in results.current(Experiment):
        if experiment.compares_methods:
            runs = {point.label: point.runs for point in experiment.points}
            yield experiment.name, {name: [run.metrics for run in runs[name]] for name in runs}
    kinds: dict[tuple[str, str], dict[str, list[Metrics]]] = {}
    for run in results.runs:
        kind = run.provenance.features, gallery(run.provenance)
        kinds.setdefault(kind, {})[run.preset] = [run.metrics]
    for (features, _), presets in kinds.items():
        yield f"leaderboard, {features}", presets


def _dots(title: str, presets: Presets, key: str, less: str = "") -> list[DotChart]:
    """A chart of the value `key`, minus the value `less`; none if no preset has the value."""
    values = {}
    for preset, metrics in presets.items():
        runs = [run.numbers() for run in metrics]
        if all(key in run for run in runs):
            values[preset] = Estimate.of([run[key] - run.get(less, 0.0) for run in runs])
    ranked = sorted(values.items(), key=lambda item: -item[1].mean)
    return dot_charts(title, [(name, name, value) for name, value in ranked])


def _gains(title: str, presets: Presets, way: Direction) -> list[Chart]:
    """A chart with a line for each preset of sets; none without a baseline or without sets."""
    known = {name: _precisions(metrics, way) for name, metrics in presets.items()}
    single = [name for name in known if "+" not in name]  # which joins the members of an ensemble
    baselines = [name for start in _BASELINES for name in single if name.startswith(start)]
    baseline = known[baselines[0]] if baselines else {}
    series: list[Series] = []
    for name, precisions in known.items():
        gains = {
            group: Estimate.of([a - b for a, b in zip(values, baseline[group], strict=False)])
            for group, values in precisions.items()
            if group in baseline  # other judged pairs make other groups
        }
        if gains and all(metrics.sets for metrics in presets[name]):
            labels = [
                f"{gain.text()} from {least} true items on ({queries} queries)"
                for (least, queries), gain in gains.items()
            ]
            points = [(least, gain) for (least, _), gain in gains.items()]
            style = len(series) % STYLES
            series.append(Series.of_estimates(name, style, points, labels, labels[-1]))
    if not series:
        return []
    axis = CategoryAxis([least for least, _ in baseline])
    unit = "true items or more"
    return [line_chart(f"{title}: gain over {baselines[0]}", series, unit, x_axis=axis)]


def _precisions(metrics: Iterable[Metrics | ExperimentMetrics], way: Direction) -> Precisions:
    """The precisions of a preset; empty if a file lacks the values."""
    values: Precisions = {}
    for run in metrics:
        groups = getattr(run.multi, way).by_positives if run.multi else None
        if groups is None:
            return {}
        keys = zip(groups.least, groups.queries, strict=True)
        for key, precision in zip(keys, groups.map_at_r, strict=True):
            values.setdefault(key, []).append(precision)
    return values


_PAGE, _KINDS, _GAIN = "One to many", (Experiment,), "Ambiguity and the gain of sets"
SECTIONS = [
    Section(_PAGE, "others", 160, "True items of other pairs", others, _KINDS, "Others"),
    Section(_PAGE, "ambiguity", 170, _GAIN, ambiguity, _KINDS, "Ambiguity"),
    Section(_PAGE, "meanings", 180, "What elements mean", meanings, _KINDS, "Meanings"),
]
