"""Our results beside those that the papers print of the same data set and setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from manymatch.config.galleries import is_papers_test
from manymatch.reporting import markdown
from manymatch.reporting.charts import STYLES, Chart
from manymatch.reporting.plausible_charts import charts_over_zeta
from manymatch.reporting.published_results import PublishedResult, published_results
from manymatch.results.runs import Run

PUBLISHED = "published"
MARKS = ("reproduced", "small-scale", "external")
"""Of our rows, as they follow each other."""

TITLES = {
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
_METRICS = {
    "r1": "R@1",
    "r5": "R@5",
    "r10": "R@10",
    "medr": "MedR",
    "map_at_r": "mAP@R",
    "r_precision": "R-P",
    "map": "mAP",
    "map_at_200": "mAP@200",
    "p_at_200": "P@200",
}
_WAYS = {"i2t": "Image → text", "t2i": "Text → image"}

OF_METHOD = {
    "vsepp": "VSE++",
    "vse_infinity": "VSE∞",
    "pvse": "PVSE",
    "pcme": "PCME",
    "dive": "DivE",
    "swamp": "SwAMP",
    "swamp_video": "SwAMP",
    "msrm": "MSRM",
    "maxmatch": "MaxMatch",
    "cora": "CORA",
}
"""What the papers call our methods; variants have something in addition ("SwAMP + PAR")."""


@dataclass(frozen=True)
class Column:
    """A number by its key (`results.numbers`)."""

    key: str
    label: str
    group: str


@dataclass(frozen=True)
class Row:
    """`mark`: `reproduced`, `small-scale`, `external` or `published`; `place`: of a paper's row
    where it is printed; `about`: on what it was made."""

    name: str
    mark: str
    place: str
    about: str
    method: str
    cells: list[str]


@dataclass(frozen=True)
class Comparison:
    """A setting of a data set: our rows, those of a mark together, then the papers', best first.

    `charts`: of our rows of each mark, what is drawn below them."""

    title: str
    columns: list[Column]
    ours: list[Row]
    theirs: list[Row]
    charts: dict[str, list[Chart]]

    @property
    def boards(self) -> list[tuple[str, list[Row]]]:
        """Our rows by mark: numbers of different worth stand in no column together."""
        return [(mark, list(rows)) for mark, rows in groupby(self.ours, key=lambda row: row.mark)]


def comparisons(dataset: str, runs: Sequence[Run]) -> list[Comparison]:
    """One for each setting of which there are rows of both ours and the papers'.

    Runs on another split, or on more or fewer images than the papers', are in none.
    """
    styled = [(run, position % STYLES) for position, run in enumerate(runs) if _on_papers_test(run)]
    settings: dict[str, list[PublishedResult]] = {}
    for each in published_results():
        if each.dataset == dataset:
            settings.setdefault(each.setting, []).append(each)
    found = [_comparison(dataset, name, styled, theirs) for name, theirs in settings.items()]
    return [each for each in found if each.ours]


def _on_papers_test(run: Run) -> bool:
    record = run.provenance
    return is_papers_test(record.dataset, record.split, record.images)


def _comparison(
    dataset: str,
    setting: str,
    runs: Sequence[tuple[Run, int]],
    theirs: Sequence[PublishedResult],
) -> Comparison:
    keys = sorted({key for each in theirs for key in each.values}, key=_order)
    of_mark = {
        mark: [each for each in runs if each[0].provenance.setting == mark] for mark in MARKS
    }
    values = [(run, run.metrics.numbers()) for same in of_mark.values() for run, _ in same]
    ranked = sorted(theirs, key=lambda each: -each.values.get(keys[0], 0.0))
    return Comparison(
        title=TITLES.get((dataset, setting), f"{dataset}, {setting}"),
        columns=[_column(key) for key in keys],
        ours=[
            _our_row(run, [found.get(key) for key in keys])
            for run, found in values
            if any(key in found for key in keys)
        ],
        theirs=[_their_row(same, keys) for same in _alike(ranked)],
        charts={mark: charts_over_zeta(setting, same) for mark, same in of_mark.items()},
    )


def _order(key: str) -> tuple[int, str, int]:
    """The sum first, then images to texts before texts to images, recalls before the rest."""
    parts = key.split(".")
    way = next((way for way in _WAYS if way in parts), "")
    names = list(_METRICS)
    return ("rsum" not in parts, way, names.index(parts[-1]) if parts[-1] in names else len(names))


def _column(key: str) -> Column:
    parts = key.split(".")
    group = next((shown for way, shown in _WAYS.items() if way in parts), "")
    label = "PMRP" if parts[0] == "pmrp" else _METRICS.get(parts[-1], parts[-1])
    return Column(key, label, group)


def _alike(rows: Iterable[PublishedResult]) -> list[list[PublishedResult]]:
    """Rows that papers print again, together."""
    found: dict[tuple[object, ...], list[PublishedResult]] = {}
    for each in rows:
        same = each.method, each.features, each.text_encoder, each.marks
        found.setdefault((*same, *sorted(each.values.items())), []).append(each)
    return list(found.values())


def _our_row(run: Run, values: list[float | None]) -> Row:
    record = run.provenance
    about = ", ".join(filter(None, [record.features, run.kind]))
    cells = ["-" if value is None else f"{value:.1f}" for value in values]
    return Row(run.preset, record.setting, "", about, record.method, cells)


def _their_row(same: Sequence[PublishedResult], keys: Sequence[str]) -> Row:
    first = same[0]
    places = "; ".join(f"{each.paper}, {each.section}" for each in same)
    marks = [mark.replace("_", " ") for mark in first.marks.split()]
    about = ", ".join(filter(None, [first.features, first.text_encoder, *marks]))
    # With as many digits as are printed.
    cells = [f"{first.values[key]:g}" if key in first.values else "-" for key in keys]
    return Row(first.method, PUBLISHED, places, about, "", cells)


def to_markdown(dataset: str, runs: Sequence[Run]) -> list[str]:
    """Of each setting a table a mark: our rows, then of the papers' those of the same methods,
    which are all of ours beside a model whose method nobody knows."""
    return [part for each in comparisons(dataset, runs) for part in _tables(each)]


def _tables(found: Comparison) -> Iterator[str]:
    methods = {name for row in found.ours for name in row.method.split("+")}
    known = {OF_METHOD[name] for name in methods & OF_METHOD.keys()}
    if not methods <= OF_METHOD.keys():
        known = {*OF_METHOD.values()}
    theirs = [row for row in found.theirs if row.name.split()[0] in known]
    heads = [f"{column.group} {column.label}".strip() for column in found.columns]
    yield f"**{found.title}, beside the papers' numbers**"
    for mark, rows in [*found.boards, (PUBLISHED, theirs)]:
        cells = [[row.name, row.place or row.mark, row.about, *row.cells] for row in rows]
        lines = markdown.table(["Method", "From", "On", *heads], cells, texts=3)
        yield "\n".join([f"*{mark}*", "", *lines])
