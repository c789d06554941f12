"""Charts as plain geometry. The page draws a chart as an SVG that stretches while text does not."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from manymatch.reporting.estimates import Estimate
from manymatch.reporting.table import Block, Cell
from manymatch.results.runs import Run

STYLES = 10
"""Line styles that style.css defines. Further lines start again with the first style."""

_MAX_POINTS = 200
"""A longer line is thinned evenly to this number of points; its ends are kept."""


def styles(runs: Sequence[Run]) -> dict[str, int]:
    """The number of each preset's line style, by its place among one data set's runs."""
    return {run.preset: position % STYLES for position, run in enumerate(runs)}


@dataclass(frozen=True)
class Tick:
    """A label on an axis, in percent from the left or the top."""

    label: str
    at: float


class LinearAxis:
    """A range with round ticks that holds all `values`; with `whole` the ticks are integers and the
    ends are those of the values."""

    def __init__(self, values: Sequence[float], whole: bool = False) -> None:
        low, high = min(values), max(values)
        quarter = (high - low or abs(high) or 1.0) / 4
        # The next of 1, 2, 5, 10, 20, 50 ... (any power of ten).
        power = 10.0 ** math.floor(math.log10(quarter))
        step = next(n * power for n in (1, 2, 5, 10) if n * power >= quarter * (1 - 1e-9))
        self.step = max(step, 1.0 if whole else 0.0)
        self.low = low if whole else math.floor(low / self.step) * self.step
        self.high = high if whole else math.ceil(high / self.step) * self.step
        if self.low == self.high:
            self.high = self.low + self.step

    def at(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        values = [i * self.step for i in range(first, last + 1)]
        return [Tick(f"{value:,.10g}", round(self.at(value), 2)) for value in values]


class LogAxis:
    """The range between two powers of ten that holds all positive `values`. Past five powers only
    every second power has a tick."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.floor(math.log10(min(values)) + 1e-9)
        self.high = max(math.ceil(math.log10(max(values)) - 1e-9), self.low + 1)

    def at(self, value: float) -> float:
        return 100 * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        powers = range(self.low, self.high + 1, 1 if self.high - self.low < 4 else 2)
        return [Tick(_short(10.0**power), round(self.at(10.0**power), 2)) for power in powers]


class CategoryAxis:
    """Equal steps between the sorted `values`, however far apart the values are. `label` tells the
    text of a tick."""

    def __init__(
        self, values: Sequence[float], label: Callable[[float], str] = "{:g}".format
    ) -> None:
        self.values, self.label = sorted(set(values)), label

    def at(self, value: float) -> float:
        return 100 * (self.values.index(value) + 0.5) / len(self.values)

    def ticks(self) -> list[Tick]:
        return [Tick(self.label(value), round(self.at(value), 2)) for value in self.values]


Axis = LinearAxis | LogAxis | CategoryAxis
"""Maps values to percent of the way along an axis."""


@dataclass(frozen=True)
class Series:
    """A line to draw: its points, and what the legend says besides the name. `labels` are the texts
    of the points, `spreads` the half-widths of their ranges."""

    name: str
    style: int
    points: Sequence[tuple[Any, float]]
    summary: str
    labels: Sequence[str]
    spreads: Sequence[float] = ()

    @classmethod
    def of_estimates(
        cls,
        name: str,
        style: int,
        points: Sequence[tuple[float, Estimate]],
        labels: Sequence[str],
        summary: str,
    ) -> "Series":
        """A line through means, with the deviations as ranges."""
        means = [(x, value.mean) for x, value in points]
        return cls(name, style, means, summary, labels, [v.deviation or 0.0 for _, v in points])

    @property
    def heights(self) -> list[tuple[float, float, float]]:
        """The value of each point and the ends of its range."""
        spreads = self.spreads or [0.0] * len(self.points)
        pairs = zip(self.points, spreads, strict=True)
        return [(y, y - spread, y + spread) for (_, y), spread in pairs]


@dataclass(frozen=True)
class Line:
    """A line in a square of 1000 x 1000, y down. `dots` are (label, x, y) of the points, `ranges`
    is a path of upright strokes."""

    name: str
    style: int
    path: str
    dots: list[tuple[str, float, float]]
    summary: str
    ranges: str = ""


class Chart(Block):
    """Lines over common axes; `unit` is what the horizontal axis counts."""

    title: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    unit: str
    legend: bool = True


@dataclass(frozen=True)
class Dot:
    """A row of a dot chart: for each value the mean and the ends of its range, in percent from the
    left. A row without values is the heading of the rows below."""

    name: Cell
    text: str
    marks: list[list[float]]


class DotChart(Block):
    """One row for each category over a common scale, which need not begin at zero. `legend` names
    the values of a row if there are several."""

    title: str
    dots: list[Dot]
    ticks: list[Tick]
    legend: Sequence[str] = ()


def line_chart(
    title: str,
    series: Sequence[Series],
    unit: str,
    *,
    x_axis: Axis | None = None,
    y_axis: Axis | None = None,
    legend: bool = True,
) -> Chart:
    """The chart of at least one series with points.

    Args:
        x_axis: by default whole steps that hold all points.
        y_axis: by default a linear axis that holds all points and their ranges.
        legend: whether the names of the lines are shown.
    """
    x_axis = x_axis or LinearAxis([x for line in series for x, _ in line.points], whole=True)
    y_axis = y_axis or LinearAxis([y for line in series for ends in line.heights for y in ends])
    y_ticks = [Tick(tick.label, round(100 - tick.at, 2)) for tick in y_axis.ticks()]
    lines = [_line(one, x_axis, y_axis) for one in series]
    return Chart(title, lines, x_axis.ticks(), y_ticks, unit, legend)


def dot_charts(
    title: str,
    rows: Sequence[tuple[Cell, Sequence[Estimate]]],
    digits: int = 1,
    legend: Sequence[str] = (),
    zero: bool = False,
) -> list[DotChart]:
    """The chart of rows of names and estimates; none without an estimate. `zero`: the axis holds 0
    too."""
    ends = [end for _, values in rows for value in values for end in _ends(value)]
    if not ends:
        return []
    axis = LinearAxis([*ends, 0.0] if zero else ends)
    dots = [
        Dot(
            name,
            " / ".join(value.text(digits) for value in values),
            [[round(axis.at(end), 2) for end in _ends(value)] for value in values],
        )
        for name, values in rows
    ]
    ticks = axis.ticks()
    return [DotChart(title, dots, [ticks[0], ticks[-1]], legend)]


def _ends(value: Estimate) -> tuple[float, float, float]:
    """The mean, and the mean less and plus the deviation."""
    half = value.deviation or 0.0
    return value.mean, value.mean - half, value.mean + half


def _line(series: Series, x_axis: Axis, y_axis: Axis) -> Line:
    points: list[tuple[str, float, list[float]]] = [
        (
            f"{series.name}: {label}",
            round(10 * x_axis.at(x), 1),
            [round(1000 - 10 * y_axis.at(y), 1) for y in heights],
        )
        for label, (x, _), heights in zip(series.labels, series.points, series.heights, strict=True)
    ]
    if len(points) > _MAX_POINTS:
        scale = (len(points) - 1) / (_MAX_POINTS - 1)
        points = [points[round(i * scale)] for i in range(_MAX_POINTS)]
    return Line(
        series.name,
        series.style,
        "M" + "L".join(f"{x:.1f} {y:.1f}" for _, x, (y, *_) in points),
        [(label, x, y) for label, x, (y, *_) in points],
        series.summary,
        "".join(f"M{x:.1f} {low:.1f}V{high:.1f}" for _, x, (_, low, high) in points if low > high),
    )


def _short(value: float) -> str:
    """10000 as "10K"."""
    for unit, size in (("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
