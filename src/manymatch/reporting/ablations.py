"""Ablations as tables: each point's mean and spread over its seeds, the best marked."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manymatch.reporting import markdown, published_ablations
from manymatch.results.ablations import Ablation, AblationPoint, AblationRun
from manymatch.results.sets import COLLAPSED

SECONDS = "seconds"


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (None of a single value)."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)

    def text(self, digits: int = 1) -> str:
        mean = f"{self.mean:.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True)
class Measure:
    """A column; `key` as in `Record.numbers`, or `seconds`."""

    key: str
    label: str
    way: str = ""
    """Of a metric that is there both ways."""
    ranked: bool = True
    """Whether more is better, so that the best is marked."""
    digits: int = 1
    least: float | None = None
    """Of sets: those whose mean is below it have collapsed."""

    @property
    def title(self) -> str:
        return f"{self.label}, {self.way}" if self.way else self.label


_I2T, _T2I = "image → text", "text → image"
MEASURES = [
    Measure("rsum", "rsum"),
    Measure("i2t.r1", "R@1", _I2T),
    Measure("t2i.r1", "R@1", _T2I),
    Measure("multi.i2t.map_at_r", "mAP@R", _I2T),
    Measure("multi.t2i.map_at_r", "mAP@R", _T2I),
    Measure("multi.i2t.r_precision", "R-P", _I2T),
    Measure("multi.t2i.r_precision", "R-P", _T2I),
    *(
        Measure(f"sets.{side}.{key}", label, shown, ranked=False, digits=digits, least=least)
        for key, label, digits, least in (
            ("log_circular_variance", "Log variance", 2, COLLAPSED),
            ("winners", "Winning elements", 1, None),
        )
        for side, shown in (("images", "images"), ("texts", "captions"))
    ),
    Measure(SECONDS, "Training, s", ranked=False, digits=0),
]


@dataclass(frozen=True)
class Cell:
    spread: Spread | None
    text: str
    best: bool
    collapsed: bool = False


@dataclass(frozen=True)
class Table:
    """`names[point][column]` and `cells[point][measure]`; the points are in the table's order.

    A grid has a column of `heads` for each of its keys, named points have one for all.
    """

    points: list[AblationPoint]
    heads: list[str]
    names: list[list[str]]
    measures: list[Measure]
    cells: list[list[Cell]]


def table(ablation: Ablation) -> Table:
    """Measures that no run has are left out."""
    points = ablation.points
    if ablation.of_methods:
        points = sorted(points, key=lambda point: -_mean(point, "rsum"))
    rows = [[spread(point, measure.key) for measure in MEASURES] for point in points]
    there = [any(row[column] is not None for row in rows) for column in range(len(MEASURES))]
    columns = [column for column, found in enumerate(there) if found]
    best = {column: _best(MEASURES[column], [row[column] for row in rows]) for column in columns}
    cells = [[_cell(MEASURES[c], row[c], best[c]) for c in columns] for row in rows]
    names = [_names(ablation.keys, point) for point in points]
    return Table(points, _heads(ablation), names, [MEASURES[c] for c in columns], cells)


def _heads(ablation: Ablation) -> list[str]:
    if ablation.of_methods:
        return ["Method"]
    return ablation.keys or ["Setting"]


def _names(keys: Sequence[str], point: AblationPoint) -> list[str]:
    return [value_text(point.settings[key]) for key in keys] or [point.label]


def value_text(value: Any) -> str:
    """A setting as YAML has it."""
    return value if isinstance(value, str) else json.dumps(value)


def spread(point: AblationPoint, key: str) -> Spread | None:
    """Of one measure over the point's seeds; None where no run has it."""
    values = [found[key] for run in point.runs if key in (found := _values(run))]
    return Spread.of(values) if values else None


def _values(run: AblationRun) -> dict[str, float]:
    seconds = {} if run.seconds is None else {SECONDS: run.seconds}
    return run.metrics.numbers() | seconds


def _mean(point: AblationPoint, key: str) -> float:
    found = spread(point, key)
    assert found is not None  # every metrics file has its rsum
    return found.mean


def _best(measure: Measure, found: Sequence[Spread | None]) -> float | None:
    means = [each.mean for each in found if each is not None]
    return max(means) if measure.ranked and len(means) > 1 else None


def _cell(measure: Measure, found: Spread | None, best: float | None) -> Cell:
    if found is None:
        return Cell(None, "-", best=False)
    collapsed = measure.least is not None and found.mean < measure.least
    return Cell(found, found.text(measure.digits), found.mean == best, collapsed)


def sizes(ablation: Ablation) -> str:
    """On what and how often: "test: 300 images, 1,500 captions; seed 0"."""
    gallery = f"{ablation.split}: {ablation.images:,} images, {ablation.captions:,} captions"
    seeds = ", ".join(map(str, ablation.seeds))
    if len(ablation.seeds) == 1:
        return f"{gallery}; seed {seeds}"
    return f"{gallery}; mean ± standard deviation of seeds {seeds}"


def to_markdown(ablation: Ablation) -> str:
    """A table with a row a point, pairs of numbers image → text / text → image; below it, marked,
    what a paper prints of the same question."""
    found = table(ablation)
    columns: dict[str, list[int]] = {}
    for number, measure in enumerate(found.measures):
        columns.setdefault(measure.label, []).append(number)
    rows = [
        [*names, *(" / ".join(_marked(cells[c]) for c in group) for group in columns.values())]
        for names, cells in zip(found.names, found.cells, strict=True)
    ]
    lines = markdown.table([*found.heads, *columns], rows, texts=len(found.heads))
    head = f"**{ablation.name}** ({sizes(ablation)}). {ablation.about}".strip()
    theirs = published_ablations.to_markdown(ablation.name)
    return "\n".join([head, "", *lines]) + "\n" + theirs


def _marked(cell: Cell) -> str:
    text = f"{cell.text} (collapsed)" if cell.collapsed else cell.text
    return f"**{text}**" if cell.best else text
