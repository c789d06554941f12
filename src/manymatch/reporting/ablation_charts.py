"""Ablations as pictures: lines over a number that varies, a row of dots for anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manymatch.reporting.ablations import (
    MEASURES,
    Measure,
    Spread,
    spread,
    value_text,
)
from manymatch.reporting.charts import STYLES, Axis, Chart, Line, Tick
from manymatch.results.ablations import Ablation, AblationPoint

_PLOTTED = ("rsum", "multi.i2t.map_at_r", "multi.t2i.map_at_r")
_FEWEST = 3
"""Values of a number that make a line."""

Number = float
Placed = tuple[Number, Spread]


@dataclass(frozen=True)
class Dot:
    """A point's mean and the ends of its spread, in percent from the left."""

    label: str
    full_label: str
    text: str
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Dots:
    """A row a point, over one scale, which need not begin at zero."""

    title: str
    dots: list[Dot]
    ticks: list[Tick]
    """The ends of the scale; there is no room for more."""


def line_charts(ablation: Ablation) -> list[Chart]:
    """A chart a measure, over the key with most numbers; none if no key is a number throughout."""
    key = _numeric_key(ablation)
    if key is None:
        return []
    return [chart for measure in _measures() if (chart := _chart(ablation, key, measure))]


def dot_charts(points: Sequence[AblationPoint], keys: Sequence[str]) -> list[Dots]:
    """A chart a measure, with a row a point in the order given, called by the values of `keys`."""
    found = [(measure, _spreads(points, measure.key)) for measure in _measures()]
    return [_dots(measure, pairs, keys) for measure, pairs in found if pairs]


def _measures() -> list[Measure]:
    return [measure for measure in MEASURES if measure.key in _PLOTTED]


def _spreads(points: Sequence[AblationPoint], key: str) -> list[tuple[AblationPoint, Spread]]:
    pairs = [(point, spread(point, key)) for point in points]
    return [(point, found) for point, found in pairs if found is not None]


def _numeric_key(ablation: Ablation) -> str | None:
    values = {key: _values(ablation, key) for key in ablation.keys}
    numeric = [key for key, found in values.items() if all(map(_is_number, found))]
    best = max(numeric, key=lambda key: len(values[key]), default=None)
    return best if best is not None and len(values[best]) >= _FEWEST else None


def _values(ablation: Ablation, key: str) -> list[Any]:
    """Of one key, each once, in the order of the points."""
    found: list[Any] = []
    for point in ablation.points:
        value = point.settings[key]
        if value not in found:
            found.append(value)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _chart(ablation: Ablation, key: str, measure: Measure) -> Chart | None:
    groups: dict[str, list[Placed]] = {}
    for point, found in _spreads(ablation.points, measure.key):
        groups.setdefault(_group(point, key), []).append((point.settings[key], found))
    if not groups:
        return None
    values = sorted(_values(ablation, key))
    ends = [end for placed in groups.values() for _, found in placed for end in _ends(found)]
    axis = Axis(ends)
    lines = [
        _line(name or ablation.preset or "", number % STYLES, sorted(placed), values, axis)
        for number, (name, placed) in enumerate(groups.items())
    ]
    x_ticks = [Tick(f"{value:g}", round(_at(value, values) / 10, 2)) for value in values]
    y_ticks = [Tick(tick.label, 100 - tick.at) for tick in axis.ticks()]
    return Chart(measure.title, lines, x_ticks, y_ticks, unit=key)


def _group(point: AblationPoint, key: str) -> str:
    """What tells the points of one line from those of another."""
    others = {name: value for name, value in point.settings.items() if name != key}
    return ", ".join(f"{name}={value_text(value)}" for name, value in others.items())


def _line(
    name: str, style: int, placed: Sequence[Placed], values: Sequence[Number], axis: Axis
) -> Line:
    places = [(_at(value, values), 1000 - 10 * axis.at(found.mean)) for value, found in placed]
    ranges = [
        f"M{x:.1f} {1000 - 10 * axis.at(low):.1f}V{1000 - 10 * axis.at(high):.1f}"
        for (x, _), (_, found) in zip(places, placed, strict=True)
        for low, high in [_ends(found)]
        if low < high
    ]
    dots = [
        (f"{name}, {value:g}: {found.text()}", round(x, 1), round(y, 1))
        for (value, found), (x, y) in zip(placed, places, strict=True)
    ]
    best, of_best = max(placed, key=lambda pair: pair[1].mean)
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    summary = f"best {of_best.text()} at {best:g}"
    return Line(name, style, path, dots, summary, ranges="".join(ranges))


def _at(value: Number, values: Sequence[Number]) -> float:
    """Equal steps, whatever the numbers: of 1 000 horizontally."""
    return 1000 * (values.index(value) + 0.5) / len(values)


def _ends(found: Spread) -> tuple[float, float]:
    deviation = found.deviation or 0.0
    return found.mean - deviation, found.mean + deviation


def _dots(
    measure: Measure, pairs: Sequence[tuple[AblationPoint, Spread]], keys: Sequence[str]
) -> Dots:
    axis = Axis([end for _, found in pairs for end in _ends(found)])

    def percent(value: float) -> float:
        return round(axis.at(value), 2)

    dots = [
        Dot(
            " · ".join(value_text(point.settings[key]) for key in keys) or point.label,
            point.label,
            found.text(measure.digits),
            percent(found.mean),
            *map(percent, _ends(found)),
        )
        for point, found in pairs
    ]
    ticks = axis.ticks()
    return Dots(measure.title, dots, [ticks[0], ticks[-1]])
