"""Our results beside the results that the papers print of the same data set and setting."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from manymatch.config.galleries import is_papers_test
from manymatch.config.names import method_titles
from manymatch.reporting.chart import Chart, Series, line_chart, styles
from manymatch.reporting.page import Section
from manymatch.reporting.published import PublishedResult, published_results
from manymatch.reporting.table import Block, Cell, Column, Folded, Grid, Heading, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.retrieval import METRICS, metric
from manymatch.results.runs import WAYS, Run

MARKS = ("reproduced", "small-scale", "external")
"""The settings of our results, in the order of the tables."""

_TITLES = {
    ("coco", "1k"): "COCO 1K, mean of five folds",
    ("coco", "5k"): "COCO 5K",
    ("coco", "eccv_caption"): "ECCV Caption",
    ("coco", "cxc"): "CxC",
    ("cub", "all_classes"): "CUB, all classes",
    ("cub", "zero_shot"): "CUB, zero-shot",
    ("youcook2", "test"): "YouCook2",
    ("msrvtt", "test"): "MSR-VTT, JSFusion's 1,000 test clips",
    ("lsmdc", "test"): "LSMDC, 1,000 test clips",
}
WAY_LABELS: dict[str, str] = {way: name.capitalize() for way, name in WAYS.items()}

PAPERS_NAME = method_titles()
"""What the papers call our methods. The papers' variants have a longer name ("SwAMP + PAR")."""


@dataclass(frozen=True)
class Comparison:
    """One setting of a data set: our results, one table for each of `MARKS` that occurs, and the
    papers' results, best first. `runs` are ours by mark."""

    setting: str
    title: str
    ours: dict[str, Table]
    theirs: Table
    runs: dict[str, list[Run]]


def comparisons(dataset: str, runs: Sequence[Run]) -> list[Comparison]:
    """A comparison for each setting that both our results and the papers have.

    Runs on another split, or on another number of images than the papers' test, are left out.
    """
    comparable = [
        run
        for run in runs
        if is_papers_test(run.dataset, run.provenance.split, run.provenance.images)
    ]
    settings: dict[str, list[PublishedResult]] = {}
    for result in published_results():
        if result.dataset == dataset:
            settings.setdefault(result.setting, []).append(result)
    compared = []
    for setting, theirs in settings.items():
        keys = sorted({key for result in theirs for key in result.values}, key=_order)
        ranked = sorted(theirs, key=lambda result: -result.values.get(keys[0], 0.0))
        title = _TITLES.get((dataset, setting), f"{dataset}, {setting}")
        columns = [Column(name, numeric=False) for name in ("Method", "From", "On")]
        for key in keys:
            parts = key.split(".")
            group = next((shown for way, shown in WAY_LABELS.items() if way in parts), "")
            columns.append(Column("PMRP" if parts[0] == "pmrp" else metric(key).label, group))
        known = [run for run in comparable if run.metrics.numbers().keys() & set(keys)]
        ours = {mark: [run for run in known if run.provenance.setting == mark] for mark in MARKS}
        tables = {
            mark: Table(f"{title}: {mark}", columns, [_our_row(run, keys) for run in same])
            for mark, same in ours.items()
            if same
        }
        rows = [_their_row(same, keys) for same in _alike(ranked)]
        published = Table(f"{title}: published results", columns, rows)
        compared.append(Comparison(setting, title, tables, published, ours))
    return [comparison for comparison in compared if comparison.ours]


def _order(key: str) -> tuple[bool, str, int]:
    """The sum first, then images to texts before texts to images, recalls before other metrics."""
    parts = key.split(".")
    way = next((way for way in WAY_LABELS if way in parts), "")
    return "rsum" not in parts, way, [*METRICS, parts[-1]].index(parts[-1])


def _alike(results: Iterable[PublishedResult]) -> list[list[PublishedResult]]:
    """The results with equal values together: a paper may print the row of another paper."""
    groups: dict[tuple[object, ...], list[PublishedResult]] = {}
    for result in results:
        same = result.method, result.features, result.text_encoder, result.marks
        groups.setdefault((*same, *sorted(result.values.items())), []).append(result)
    return list(groups.values())


def _our_row(run: Run, keys: Sequence[str]) -> list[Cell]:
    numbers, record = run.metrics.numbers(), run.provenance
    about = ", ".join(filter(None, [record.features, run.kind]))
    cells = [Cell.number(numbers.get(key)) for key in keys]
    return [Cell(run.preset), Cell(badges=(record.setting,)), Cell(about), *cells]


def _their_row(same: Sequence[PublishedResult], keys: Sequence[str]) -> list[Cell]:
    first = same[0]
    sources = "; ".join(f"{result.paper}, {result.section}" for result in same)
    marks = [mark.replace("_", " ") for mark in first.marks.split()]
    about = ", ".join(filter(None, [first.features, first.text_encoder, *marks]))
    # With as many digits as the paper prints.
    cells = [
        Cell(f"{first.values[key]:g}", first.values[key]) if key in first.values else Cell()
        for key in keys
    ]
    return [Cell(first.method), Cell(badges=("published",), note=sources), Cell(about), *cells]


def to_markdown(dataset: str, runs: Sequence[Run]) -> list[str]:
    """For each setting our tables, then the papers' results of the same methods. If the method of a
    model is unknown, the papers' results of all our methods are shown."""
    parts = []
    for comparison in comparisons(dataset, runs):
        compared = [run for same in comparison.runs.values() for run in same]
        names = {name for run in compared for name in run.provenance.method.split("+")}
        known = {
            PAPERS_NAME[name] for name in (names if names <= PAPERS_NAME.keys() else PAPERS_NAME)
        }
        rows = [row for row in comparison.theirs.rows if row[0].text.split()[0] in known]
        theirs = Table(comparison.theirs.title, comparison.theirs.columns, rows)
        parts.append(f"**{comparison.title}, beside the papers' numbers**")
        for mark, table in [*comparison.ours.items(), ("published", theirs)]:
            parts.append("\n".join([f"*{mark}*", "", *table.to_markdown()]))
    return parts


def section(results: AllResults) -> list[Block]:
    """A table for each setting that we and the papers have."""
    runs = results.runs
    blocks: list[Block] = []
    for comparison in comparisons(runs[0].dataset, runs) if runs else []:
        blocks.append(Heading(comparison.title))
        for mark, table in comparison.ours.items():
            charts = charts_over_zeta(comparison.setting, comparison.runs[mark], styles(runs))
            blocks += [table, *([Grid(charts)] if charts else [])]
        count = len(comparison.theirs.rows)
        blocks.append(Folded(f"{count} rows of the papers", [comparison.theirs]))
    note = Note(
        "Published rows are as a paper prints them, on the paper's data and settings. A row that "
        "several papers print is shown once. Only our reproduced rows should be compared with "
        "published rows."
    )
    return [note, *blocks] if blocks else []


def charts_over_zeta(setting: str, runs: Sequence[Run], styles: dict[str, int]) -> list[Chart]:
    """PMRP over zeta, the number of object labels that may differ (MSRM, figure 7): one chart for
    each direction, with a line for each run that has values. `setting` is the gallery, `1k` or
    `5k`."""
    charts = []
    for way, title in WAYS.items():
        series = []
        for run in runs:
            points = sorted(
                (int(found[1]), value)
                for key, value in run.metrics.numbers().items()
                if (found := re.fullmatch(rf"pmrp\.{setting}\.zeta(\d+)\.{way}", key))
            )
            if points:
                summary = ", ".join(f"{value:.1f}" for _, value in points)
                labels = [f"zeta {zeta}: {value:.1f}" for zeta, value in points]
                series.append(Series(run.preset, styles[run.preset], points, summary, labels))
        if series:
            chart = line_chart(f"PMRP over zeta, {title}", series, "labels that may differ")
            charts.append(chart)
    return charts


SECTIONS = [
    Section("Results", "published", 30, "Beside the papers' numbers", section, link="Published")
]
