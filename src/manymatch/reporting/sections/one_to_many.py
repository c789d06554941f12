"""One query with many true items: true items of other pairs, ambiguity, and what elements mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from manymatch.reporting.chart import (
    STYLES,
    CategoryAxis,
    Chart,
    DotChart,
    LinearAxis,
    Series,
    dot_charts,
    line_chart,
)
from manymatch.reporting.estimates import Difference, Estimate
from manymatch.reporting.page import Section, gallery, method_address
from manymatch.reporting.table import Block, Cell, Folded, Grid, Note, Prose
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment, ExperimentMetrics
from manymatch.results.metrics import Metrics
from manymatch.results.runs import WAYS, Direction

Presets = Mapping[str, Sequence[Metrics | ExperimentMetrics]]
"""The metrics of each preset, one for each seed."""

Precisions = dict[tuple[int, int], list[float]]
"""mAP@R with each seed, by the least number of true items and the number of queries."""

BASELINES = ("vse_infinity", "vsepp")
"""Methods with one vector for each item, the better first."""

_FEW = 20
"""Groups of fewer queries are left out of the conclusion."""


def others(results: AllResults) -> list[Block]:
    """R-P of the true items beyond the annotated ones."""
    keys = [(f"multi.{way}.others", "") for way in ("t2i", "i2t")]
    study = results.broadest
    return _answered(
        conclusion(study) if study else "",
        _dots(
            "Percent of the true items of other pairs", results, keys, [WAYS["t2i"], WAYS["i2t"]]
        ),
        "The annotated items of a query are taken out of its ranking. The query has R other true "
        "items. The value is the percentage of these items among the first R items that are left. "
        "Queries without another true item do not count.",
    )


def conclusion(study: Experiment) -> str:
    """Which methods of a study find most and fewest of the other true images of a caption; empty
    without such values."""
    key = "multi.t2i.others"
    ranked = [name for name, _ in _ranked(_presets(study), [(key, "")])]
    if len(ranked) < 2:
        return ""
    runs = {point.label: point.runs for point in study.points}
    sides = [
        {run.seed: run.metrics.numbers()[key] for run in runs[name]}
        for name in (ranked[0], ranked[-1])
    ]
    most, fewest = (Estimate.of(side.values()).text() for side in sides)
    return (
        f"A caption is true of R more images than its own. Of these {ranked[0]} ranks most among "
        f"the first R, {most}%, and {ranked[-1]} fewest, {fewest}%: "
        f"{Difference.of(sides[0], sides[1]).text(1)}."
    )


def ambiguity(results: AllResults) -> list[Block]:
    """What sets gain over one vector, by the number of true items of a query."""
    shown = [(title, *_gains(presets)) for title, presets in _tables(results)]
    charts = [Grid(_gain_charts(*one), "wide") for one in shown if one[-1]]
    folded = [Folded("The same in other experiments", charts[1:])] if charts[1:] else []
    return _answered(
        next((_change(*one) for one in shown if one[-1]), ""),
        [*charts[:1], *folded],
        "The value is mAP@R of a method of sets minus mAP@R of the baseline with one vector, in "
        "percentage points, for queries with 1, with 2 to 3, with 4 to 7 ... true items. If sets "
        "help because a query has several meanings, the gain grows with the number of true items. "
        "A gain of few queries is uncertain.",
    )


def meanings(results: AllResults) -> list[Block]:
    """Whether captions with a common object match the same element of their image."""
    keys = [("sets.meanings.together", "sets.meanings.together_by_chance")]
    study = results.broadest
    ranked = _ranked(_presets(study), keys) if study else []
    values = ", ".join(f"{name} {value.text()}" for name, (value,) in ranked)
    return _answered(
        f"Points above chance in {study.name}: {values}." if study and values else "",
        _dots("Points above chance", results, keys, zero=True),
        "Pairs of captions of one image that have a common object: how often both captions match "
        "the same element of the image best. The value is the difference, in percentage points, "
        "from the share by chance, with the objects permuted among the captions of the image. "
        "With a value of 0, the elements do not separate what the captions speak of.",
    )


def _answered(answer: str, charts: Sequence[Block], note: str) -> list[Block]:
    """The answer in words, the charts, and what these show; nothing without a chart."""
    words = [Prose([[Cell(answer)]], large=True)] if answer else []
    return [*words, *charts, Note(note)] if charts else []


def _presets(experiment: Experiment) -> Presets:
    return {point.label: [run.metrics for run in point.runs] for point in experiment.points}


def _tables(results: AllResults) -> Iterator[tuple[str, Presets]]:
    """The tables of whole methods, the broadest first, then the leaderboard's runs of equal
    features and galleries, each with a title."""
    first = results.broadest
    for experiment in sorted(results.comparisons, key=lambda one: one is not first):
        yield experiment.name, _presets(experiment)
    kinds: dict[tuple[str, str], dict[str, list[Metrics]]] = {}
    for run in results.runs:
        kind = run.provenance.features, gallery(run.provenance)
        kinds.setdefault(kind, {})[run.preset] = [run.metrics]
    for (features, _), presets in kinds.items():
        yield f"leaderboard, {features}", presets


Keys = Sequence[tuple[str, str]]
"""Values, each less another one ("": none)."""


def _dots(
    title: str, results: AllResults, keys: Keys, legend: Sequence[str] = (), zero: bool = False
) -> list[DotChart]:
    """One chart of all tables on one scale, each below its name."""
    rows: list[tuple[Cell, Sequence[Estimate]]] = []
    for name, presets in _tables(results):
        if ranked := _ranked(presets, keys):
            rows.append((Cell(name), []))
        for preset, estimates in ranked:
            href = method_address(results.datasets[0], preset)
            rows.append((Cell(preset, href=href), estimates))
    return dot_charts(title, rows, legend=legend, zero=zero)


def _ranked(presets: Presets, keys: Keys) -> list[tuple[str, list[Estimate]]]:
    """The presets that have all values, those with the best first value first."""
    values = []
    for preset, metrics in presets.items():
        runs = [run.numbers() for run in metrics]
        if all(key in run for run in runs for key, _ in keys):
            estimates = [
                Estimate.of([run[key] - run.get(less, 0.0) for run in runs]) for key, less in keys
            ]
            values.append((preset, estimates))
    return sorted(values, key=lambda pair: -pair[1][0].mean)


Gains = dict[Direction, dict[str, dict[tuple[int, int], Estimate]]]
"""By direction and preset the gain of each group of queries, (least number of true items, number of
queries)."""


def _gains(presets: Presets) -> tuple[str, Gains]:
    """The baseline, and the gains of the presets of sets; empty without a baseline or without
    sets."""
    gains: Gains = {}
    single = [name for name in presets if "+" not in name]  # which joins the members of an ensemble
    baselines = [name for start in BASELINES for name in single if name.startswith(start)]
    for way in WAYS if baselines else ():
        baseline = _precisions(presets[baselines[0]], way)
        for name, metrics in presets.items():
            own = {
                group: Estimate.of([a - b for a, b in zip(values, baseline[group], strict=False)])
                for group, values in _precisions(metrics, way).items()
                if group in baseline  # other judged pairs make other groups
            }
            if own and all(run.sets for run in metrics):
                gains.setdefault(way, {})[name] = own
    return baselines[0] if baselines else "", gains


def _gain_charts(title: str, baseline: str, gains: Gains) -> list[Chart]:
    """A chart for each direction, with a line for each preset of sets, on one scale."""
    lines: list[list[Series]] = []
    for presets in gains.values():
        lines.append([])
        for style, (name, groups) in enumerate(presets.items()):
            labels = [
                f"{gain.text()} with {_group(least)} true items ({queries} queries)"
                for (least, queries), gain in groups.items()
            ]
            points = [(least, gain) for (least, _), gain in groups.items()]
            lines[-1].append(Series.of_estimates(name, style % STYLES, points, labels, ""))
    every = [line for series in lines for line in series]
    scale = LinearAxis([end for line in every for heights in line.heights for end in heights])
    axes = [
        CategoryAxis([x for line in series for x, _ in line.points], _group) for series in lines
    ]
    return [
        line_chart(
            f"{WAYS[way]}, {title}: gain over {baseline}",
            series,
            "true items of a query",
            x_axis=axis,
            y_axis=scale,
        )
        for way, series, axis in zip(gains, lines, axes, strict=True)
    ]


def _change(title: str, baseline: str, gains: Gains) -> str:
    """How the gain changes from the captions with fewest to those with most true images, among
    groups that are not small."""
    parts = []
    for name, groups in gains.get("t2i", {}).items():
        large = [(least, gain.mean) for (least, count), gain in groups.items() if count >= _FEW]
        if len(large) > 1:
            (least, first), (most, last) = large[0], large[-1]
            parts.append(f"{name} {first:+.1f} and {last:+.1f}")
    if not parts:
        return ""
    return (
        f"In {title}, the gain over {baseline} with {_group(least)} and with {_group(most)} true "
        f"images of a caption is: {', '.join(parts)}."
    )


def _group(least: float) -> str:
    """The numbers of true items of a group (`evaluation.ranking.metrics.ambiguity`)."""
    return f"{least:g}" if least == 1 else f"{least:g}\N{EN DASH}{2 * least - 1:g}"


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
