"""Line charts as plain geometry; the page draws them as SVG that stretches while text does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.results.curves import Curve, Curves

_MOST_POINTS = 200
"""Points of a line that are drawn; longer curves are thinned evenly, first and last kept."""

_MOST_CHARTS = 12
"""Loss terms of one run that are drawn."""

STYLES = 6
"""Line styles that style.css defines; further lines start over."""

VALIDATION = "validation/rsum"
_TRAINING = "train/"


@dataclass(frozen=True)
class Tick:
    """A labelled position on an axis, in percent from the left or the top."""

    label: str
    at: float


@dataclass(frozen=True)
class Line:
    """A curve in a 1000 x 1000 square, y down; `style` numbers its colour and dashes."""

    name: str
    style: int
    path: str
    dots: list[tuple[str, float, float]]
    """What to say at each point, and where it is."""
    summary: str
    ranges: str = ""
    """A second path: upright strokes over the range of each point."""


@dataclass(frozen=True)
class Chart:
    title: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    unit: str = "step"
    """What is counted from left to right."""


def validation_chart(curves: Sequence[tuple[str, int, Curves]]) -> Chart | None:
    """Validation rsum of several runs (name, style, curves); None if none of them has it."""
    found = [(name, style, run[VALIDATION]) for name, style, run in curves if VALIDATION in run]
    if not found:
        return None
    labelled = [(name, style, curve, _best(curve)) for name, style, curve in found]
    return _chart("Validation rsum", labelled)


def loss_charts(curves: Curves, style: int) -> list[Chart]:
    """One small chart a training loss term of one run, each on its own scale."""
    terms = [curve for name, curve in curves.items() if name.startswith(_TRAINING)]
    return [
        _chart(name, [(name, style, term, f"{term.points[0][1]:.3g} to {term.last:.3g}")])
        for term in terms[:_MOST_CHARTS]
        for name in [term.name.removeprefix(_TRAINING)]
    ]


def _best(curve: Curve) -> str:
    step, value = curve.best
    return f"best {value:.1f} at step {step:g}"


def _chart(title: str, curves: Sequence[tuple[str, int, Curve, str]]) -> Chart:
    xs = [step for *_, curve, _ in curves for step, _ in curve.points]
    ys = [value for *_, curve, _ in curves for _, value in curve.points]
    x_axis, y_axis = Axis(xs, whole=True), Axis(ys)
    lines = [
        _line(name, style, curve, summary, x_axis, y_axis) for name, style, curve, summary in curves
    ]
    y_ticks = [Tick(tick.label, 100 - tick.at) for tick in y_axis.ticks()]
    return Chart(title, lines, x_axis.ticks(), y_ticks)


def _line(name: str, style: int, curve: Curve, summary: str, x_axis: Axis, y_axis: Axis) -> Line:
    points = _thinned(curve.points)
    places = [(x_axis.at(step) * 10, 1000 - y_axis.at(value) * 10) for step, value in points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = [
        (f"{name}: {value:.4g} at step {step:g}", round(x, 1), round(y, 1))
        for (step, value), (x, y) in zip(points, places, strict=True)
    ]
    return Line(name, style, path, dots, summary)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(points) <= _MOST_POINTS:
        return list(points)
    scale = (len(points) - 1) / (_MOST_POINTS - 1)
    return [points[round(i * scale)] for i in range(_MOST_POINTS)]


class Axis:
    """A range with round numbers for ticks that holds all `values`."""

    def __init__(self, values: Sequence[float], whole: bool = False) -> None:
        low, high = min(values), max(values)
        span = high - low or abs(high) or 1.0
        self.step = max(_round_up(span / 4), 1.0 if whole else 0.0)
        # An axis of steps ends with the last one; an axis of values ends on a tick.
        self.low = low if whole else math.floor(low / self.step) * self.step
        self.high = high if whole else math.ceil(high / self.step) * self.step
        if self.low == self.high:
            self.high = self.low + self.step

    def at(self, value: float) -> float:
        """Percent of the way along the axis."""
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[Tick]:
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        return [
            Tick(f"{value:,.10g}", round(self.at(value), 2))
            for value in (i * self.step for i in range(first, last + 1))
        ]


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 ... (any power of ten) that is at least `value`."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= value * (1 - 1e-9))
