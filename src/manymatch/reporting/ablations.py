"""Ablations as tables: mean and spread of each point over its seeds, with the best means marked."""

from __future__ import annotations

from dataclasses import dataclass

from manymatch.reporting.blocks import Block, Heading, Note, gallery
from manymatch.reporting.estimates import (
    COLLAPSED_SEEDS,
    TRAINED_TITLE,
    Estimate,
    Queries,
    interval,
)
from manymatch.reporting.published import tables_beside
from manymatch.reporting.table import Cell, Column, Table, best_value
from manymatch.results.ablations import Ablation, AblationPoint, value_text
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

    @property
    def title(self) -> str:
        return f"{self.label}, {self.way}" if self.way else self.label


MEASURES = [
    Measure("rsum", "rsum"),
    Measure(_SOUND, f"rsum {TRAINED_TITLE}", ranked=False),
    Measure(_INTERVAL, "95% interval", ranked=False),
    *(Measure(f"{way}.r1", "R@1", shown) for way, shown in WAYS.items()),
    *(
        Measure(f"multi.{way}.{key}", label, shown)
        for key, label in (("map_at_r", "mAP@R"), ("r_precision", "R-P"))
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

COLUMNS_MEANING = (
    "R@1, mAP@R and R-P are in percent; rsum is the sum of R@1, R@5 and R@10 of both directions. "
    "Pairs of numbers: image → text / text → image. Log variance (log circular variance of the "
    "elements of a set; below -4 a set has collapsed) and winning elements: images / captions. "
    "Best mean of a column in bold. The 95% interval is that of the mean rsum, over seeds and, "
    "where the file of results holds the hits of each query, over images."
)


def ranked_points(ablation: Ablation) -> list[AblationPoint]:
    """The points in the order of the table: whole methods from the best rsum down."""
    if not ablation.compares_methods:
        return ablation.points
    return sorted(ablation.points, key=lambda point: -(_mean(point, "rsum") or 0.0))


def table(ablation: Ablation) -> Table:
    """One row for each point; measures that no run has are left out. Methods have intervals."""
    points = ranked_points(ablation)
    best = {
        measure: best_value(_mean(point, measure.key) for point in points)
        for measure in [*MEASURES, *_selected(ablation)]
        if ablation.compares_methods or measure.key != _INTERVAL
    }
    heads = ["Method"] if ablation.compares_methods else ablation.keys or ["Setting"]
    return Table(
        ablation.name,
        [
            *(Column(head, numeric=False) for head in heads),
            *(
                Column(measure.way or measure.label, measure.label if measure.way else "")
                for measure in best
            ),
        ],
        [
            [
                *map(Cell, point_names(ablation, point)),
                *(_cell(point, measure, top) for measure, top in best.items()),
            ]
            for point in points
        ],
    ).filled_columns()


def _selected(ablation: Ablation) -> list[Measure]:
    """The rsums of selections of several set elements, which the plan asks for (`elements`)."""
    sides = (("images", "image elements"), ("texts", "caption elements"))
    start = {side: f"sets.{side}.rsum_of." for side, _ in sides}
    keys = {key for point in ablation.points for run in point.runs for key in run.metrics.numbers()}
    return [
        Measure(key, f"rsum, {shown} {key.removeprefix(start[side])} only", ranked=False)
        for side, shown in sides
        for key in sorted(keys)
        if key.startswith(start[side]) and "+" in key
    ]


def point_names(ablation: Ablation, point: AblationPoint) -> list[str]:
    """The values of the varied settings, or the label of a point that has a name."""
    return [value_text(point.settings[key]) for key in ablation.keys] or [point.label]


def estimate(point: AblationPoint, key: str) -> Estimate | None:
    """One measure over the point's seeds; None if no run has the measure. Seeds can collapse in
    rsum, the main score."""
    runs = [run.metrics.numbers() for run in point.runs]
    values = [numbers[key] for numbers in runs if key in numbers]
    if not values:
        return None
    return Estimate.score_estimate(values) if key == "rsum" else Estimate.of(values)


def _mean(point: AblationPoint, key: str) -> float | None:
    value = estimate(point, key)
    return None if value is None else value.mean


def _cell(point: AblationPoint, measure: Measure, best: float | None) -> Cell:
    if measure.key == _INTERVAL:
        queries = {run.seed: Queries.rsum_queries(run.hits) for run in point.runs if run.hits}
        ends = interval({run.seed: run.metrics.rsum for run in point.runs}, queries)
        return Cell(f"{ends[0]:.1f} to {ends[1]:.1f}") if ends else Cell()
    if measure.key == _SOUND:
        rsum = estimate(point, "rsum")
        return Cell(rsum.trained_text() if rsum else "")
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


def sizes(ablation: Ablation) -> str:
    """The gallery and the seeds: "test: 300 images, 1,500 captions; seed 0"."""
    seeds = ", ".join(map(str, ablation.seeds))
    if len(ablation.seeds) == 1:
        return f"{gallery(ablation)}; seed {seeds}"
    return f"{gallery(ablation)}; mean ± standard deviation of seeds {seeds}"


def summary(ablation: Ablation, anchor: str = "") -> list[Block]:
    """The name, the sizes, the question and the table."""
    about = [Note(ablation.about)] if ablation.about else []
    heading = Heading(ablation.name, sizes(ablation), anchor)
    return [heading, *about, table(ablation), *map(Note, _meaning_of_collapsed(ablation))]


def _meaning_of_collapsed(ablation: Ablation) -> list[str]:
    rsums = [estimate(point, "rsum") for point in ablation.points]
    return [COLLAPSED_SEEDS] if any(rsum and rsum.sound for rsum in rsums) else []


def blocks(ablation: Ablation) -> list[Block]:
    """The summary for a terminal, and what a paper prints of the same question."""
    theirs = (
        block
        for table in tables_beside(ablation.name)
        for block in (Heading("published", table.title), table)
    )
    return [*summary(ablation), *theirs]


def to_markdown(ablation: Ablation) -> str:
    """The table with both directions in one column, then what a paper prints of the same
    question. Below a table of methods a line explains the columns."""
    head = f"**{ablation.name}** ({sizes(ablation)}). {ablation.about}".strip()
    meaning = [COLUMNS_MEANING] if ablation.compares_methods else []
    meaning += _meaning_of_collapsed(ablation)
    lines = [head, "", *table(ablation).to_markdown(merge=True)]
    lines += ["", " ".join(meaning)] if meaning else []
    for published in tables_beside(ablation.name):
        lines += ["", f"*published* ({published.title})", "", *published.to_markdown()]
    return "\n".join(lines) + "\n"
