"""Experiments on presets: tables of means over seeds, charts, and which elements of sets match."""

from dataclasses import dataclass
from statistics import fmean

from manymatch.reporting import chart
from manymatch.reporting.chart import STYLES, CategoryAxis, Chart, DotChart, Series, line_chart
from manymatch.reporting.estimates import (
    COLLAPSED_SEEDS,
    TRAINED_TITLE,
    Estimate,
    Queries,
    best_value,
    interval,
)
from manymatch.reporting.page import Section, gallery, method_address
from manymatch.reporting.published import tables_beside
from manymatch.reporting.sections.claims import differences
from manymatch.reporting.sections.sets import PAIRS_NOTE, pair_heats
from manymatch.reporting.table import Block, Cell, Column, Folded, Grid, Heading, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment, ExperimentPoint, value_text
from manymatch.results.retrieval import metric
from manymatch.results.runs import WAYS
from manymatch.results.sets import COLLAPSED

_INTERVAL, _SOUND = "interval", "sound"


@dataclass(frozen=True)
class Measure:
    """A column: `key` is a name of `Record.numbers`, `interval`, that of rsum, or `sound`, the rsum
    without collapsed seeds.

    `way` tells two columns of one metric apart. Only in a `ranked` column the best mean is marked;
    a mean below `collapsed` gets a label.
    """

    key: str
    label: str
    way: str = ""
    ranked: bool = True
    digits: int = 1
    collapsed: float | None = None


MEASURES = [
    Measure("rsum", "rsum"),
    Measure(_SOUND, f"rsum {TRAINED_TITLE}", ranked=False),
    Measure(_INTERVAL, "95% interval", ranked=False),
    *(Measure(f"{way}.r1", metric("r1").label, shown) for way, shown in WAYS.items()),
    *(
        Measure(f"multi.{way}.{key}", metric(key).label, shown)
        for key in ("map_at_r", "r_precision")
        for way, shown in WAYS.items()
    ),
    *(
        Measure(f"sets.{side}.{key}", label, shown, ranked=False, digits=digits, collapsed=limit)
        for key, label, digits, limit in (
            ("log_circular_variance", "Log variance", 2, COLLAPSED),
            ("winners", "Winning elements", 1, None),
        )
        for side, shown in (("images", "images"), ("texts", "captions"))
    ),
]

_OF_SETS = "Log variance", "Winning elements", "rsum, "
"""How the columns begin that only methods of sets have; these stand in a table of their own."""

COLUMNS_MEANING = (
    "Recalls and precisions are in percent; rsum is the sum of R@1, R@5 and R@10 of both "
    "directions. Pairs of numbers: image → text / text → image. Log variance (log circular "
    "variance of the elements of a set; below -4 a set has collapsed) and winning elements: "
    "images / captions. Best mean of a column in bold. The 95% interval is that of the mean rsum, "
    "over seeds and, where the file of results holds the hits of each query, over images."
)


def ranked_points(experiment: Experiment) -> list[ExperimentPoint]:
    """The points in the order of the table: whole methods from the best rsum down."""
    if not experiment.compares_methods:
        return experiment.points
    return sorted(
        experiment.points, key=lambda point: -fmean(run.metrics.rsum for run in point.runs)
    )


def table(experiment: Experiment) -> Table:
    """One row for each point; measures that no run has are left out. Methods have intervals."""
    points = ranked_points(experiment)
    measures = [*MEASURES, *_selected(experiment)]
    methods = experiment.compares_methods
    if not methods:
        measures = [measure for measure in measures if measure.key != _INTERVAL]
    best = {
        measure: best_value(
            (value.mean if value else None for value in values), metric(measure.key).lower_is_better
        )
        for measure in measures
        for values in [[estimate(point, measure.key) for point in points]]
    }
    heads = ["Method"] if methods else experiment.keys or ["Setting"]
    columns = [Column(head, numeric=False) for head in heads]
    columns += [Column(one.way or one.label, one.label if one.way else "") for one in best]
    rows = []
    for point in points:
        cells = [_cell(point, measure, top) for measure, top in best.items()]
        href = method_address(experiment.dataset, point.label) if methods else ""
        rows.append([*(Cell(name, href=href) for name in point_names(experiment, point)), *cells])
    return Table(experiment.name, columns, rows).filled_columns()


def _selected(experiment: Experiment) -> list[Measure]:
    """The rsums of selections of several set elements, which the plan asks for (`elements`)."""
    runs = [run for point in experiment.points for run in point.runs]
    numbers = {key for run in runs for key in run.metrics.numbers()}
    keys = sorted(key for key in numbers if ".rsum_of." in key and "+" in key)
    return [
        Measure(key, f"rsum, {shown} elements {key.rpartition('.')[2]} only", ranked=False)
        for side, shown in (("images", "image"), ("texts", "caption"))
        for key in keys
        if key.startswith(f"sets.{side}.")
    ]


def point_names(experiment: Experiment, point: ExperimentPoint) -> list[str]:
    """The values of the varied settings, or the label of a point that has a name."""
    return [value_text(point.settings[key]) for key in experiment.keys] or [point.label]


def estimate(point: ExperimentPoint, key: str) -> Estimate | None:
    """One measure over the seeds; None if no run has the measure. Seeds can collapse in rsum."""
    runs = [run.metrics.numbers() for run in point.runs]
    values = [numbers[key] for numbers in runs if key in numbers]
    if not values:
        return None
    return Estimate.score_estimate(values) if key == "rsum" else Estimate.of(values)


def interval_text(point: ExperimentPoint) -> str:
    """The 95% interval of the mean rsum; empty for a single seed."""
    queries = {run.seed: Queries.rsum_queries(run.hits) for run in point.runs if run.hits}
    ends = interval({run.seed: run.metrics.rsum for run in point.runs}, queries)
    return f"{ends[0]:.1f} to {ends[1]:.1f}" if ends else ""


def _cell(point: ExperimentPoint, measure: Measure, best: float | None) -> Cell:
    if measure.key == _INTERVAL:
        return Cell(interval_text(point))
    if measure.key == _SOUND:
        return Cell(rsum.trained_text() if (rsum := estimate(point, "rsum")) else "")
    value = estimate(point, measure.key)
    if value is None:
        return Cell()
    collapsed = measure.collapsed is not None and value.mean < measure.collapsed
    return Cell(
        value.text(measure.digits),
        value.mean,
        measure.ranked and value.mean == best,
        ("collapsed",) if collapsed else (),
    )


def sizes(experiment: Experiment) -> str:
    """The gallery and the seeds: "test: 300 images, 1,500 captions; seed 0"."""
    what = "mean ± standard deviation of seeds" if len(experiment.seeds) > 1 else "seed"
    return f"{gallery(experiment)}; {what} {', '.join(map(str, experiment.seeds))}"


def summary(experiment: Experiment, anchor: str = "") -> list[Block]:
    """The name, the sizes, the question and the table."""
    about = [Note(experiment.about)] if experiment.about else []
    heading = Heading(experiment.name, sizes(experiment), anchor)
    tables = table(experiment).divided(*(_OF_SETS if experiment.compares_methods else ()))
    return [heading, *about, *tables, *map(Note, _meaning_of_collapsed(experiment))]


def _meaning_of_collapsed(experiment: Experiment) -> list[str]:
    rsums = (estimate(point, "rsum") for point in experiment.points)
    return [COLLAPSED_SEEDS] if any(rsum and rsum.sound for rsum in rsums) else []


def blocks(experiment: Experiment) -> list[Block]:
    """The summary for a terminal, the differences, and what a paper prints of the same question."""
    blocks = [*summary(experiment), *differences(experiment)]
    for beside in tables_beside(experiment.name):
        blocks += [Heading("published", beside.title), beside]
    return blocks


def to_markdown(experiment: Experiment) -> str:
    """The table with both directions in one column, then what a paper prints of the same
    question. Below a table of methods a line explains the columns."""
    head = f"**{experiment.name}** ({sizes(experiment)}). {experiment.about}".strip()
    meaning = [COLUMNS_MEANING] if experiment.compares_methods else []
    meaning += _meaning_of_collapsed(experiment)
    lines = [head, "", *table(experiment).to_markdown(merge=True)]
    lines += ["", " ".join(meaning)] if meaning else []
    for published in tables_beside(experiment.name):
        lines += ["", f"*published* ({published.title})", "", *published.to_markdown()]
    return "\n".join(lines) + "\n"


_DRAWN = [one for one in MEASURES if one.key == "rsum" or one.key.endswith("map_at_r")]
_FEWEST = 3  # values, from which on a numeric setting is drawn as a line


def section(results: AllResults) -> list[Block]:
    """All experiments on a data set; those that compare whole methods come first."""
    note = Note(
        "Mean ± standard deviation over the seeds, if there are several. The best mean of a column "
        "is underlined. The charts place settings at equal distances, whatever their values."
    )
    blocks: list[Block] = []
    for one in results.current(Experiment):
        blocks += summary(one, f"experiment-{one.name}")
        blocks += [
            Folded(beside.title, [beside], "published") for beside in tables_beside(one.name)
        ]
        blocks.append(Grid(line_charts(one) or dot_charts(one)))
        heats = [
            Grid([Heading(point.label), *pair_heats(pairs, point.label)], "row")
            for point in ranked_points(one)
            if (pairs := point.runs[0].pairs) is not None
        ]
        if heats:
            blocks.append(Folded("Which elements match", [Note(PAIRS_NOTE), Grid(heats, "wide")]))
    return [note, *blocks] if blocks else []


def line_charts(experiment: Experiment) -> list[Chart]:
    """A chart for each drawn measure over the numeric setting with most values. None if no setting
    is a number at every point and has enough values."""
    values = {key: [point.settings[key] for point in experiment.points] for key in experiment.keys}
    numbers = [key for key in values if all(type(value) in (int, float) for value in values[key])]
    key = max(numbers, key=lambda key: len({*values[key]}), default="")
    if not key or len({*values[key]}) < _FEWEST:
        return []
    axis = CategoryAxis(values[key])
    charts = []
    for measure in _DRAWN:
        lines: dict[str, list[tuple[float, Estimate]]] = {}
        for point in experiment.points:
            if (value := estimate(point, measure.key)) is None:
                continue
            others = {name: other for name, other in point.settings.items() if name != key}
            name = ", ".join(f"{name}={value_text(other)}" for name, other in others.items())
            line = lines.setdefault(name or experiment.preset or "", [])
            line.append((point.settings[key], value))
        series = []
        for number, (name, points) in enumerate(lines.items()):
            points.sort(key=lambda pair: pair[0])
            best, top = max(points, key=lambda pair: pair[1].mean)
            labels = [f"{setting:g}: {value.text()}" for setting, value in points]
            summary = f"best {top.text()} at {best:g}"
            series.append(Series.of_estimates(name, number % STYLES, points, labels, summary))
        if series:
            title, legend = ", ".join(filter(None, (measure.label, measure.way))), len(series) > 1
            charts.append(line_chart(title, series, key, x_axis=axis, legend=legend))
    return charts


def dot_charts(experiment: Experiment) -> list[DotChart]:
    """A chart of rsum and one of mAP@R in both directions, with a row for each point in the order
    of the table."""
    charts = []
    for title in dict.fromkeys(measure.label for measure in _DRAWN):
        measures = [measure for measure in _DRAWN if measure.label == title]
        rows = []
        for point in ranked_points(experiment):
            name = Cell(" · ".join(point_names(experiment, point)), hover=point.label)
            values = [estimate(point, measure.key) for measure in measures]
            rows.append((name, [value for value in values if value]))
        ways = [measure.way for measure in measures if measure.way]
        charts += chart.dot_charts(title, rows, measures[0].digits, ways)
    return charts


SECTIONS = [
    Section(
        "Results",
        "methods",
        40,
        "Methods over several seeds",
        lambda results: [block for one in results.comparisons for block in summary(one)],
        (Experiment,),
        link="Seeds",
        markdown=lambda results: [*map(to_markdown, results.comparisons)],
        latex=lambda results: [
            f"% {one.name}: {sizes(one)}\n{table(one).to_latex(merge=True)}"
            for one in results.comparisons
        ],
    ),
    Section("Experiments", "experiments", 80, "Experiments", section, (Experiment,)),
]
