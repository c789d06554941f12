"""PMRP over zeta, the number of object labels that may differ: MSRM, figure 7."""

from __future__ import annotations

from collections.abc import Sequence

from manymatch.reporting.charts import Axis, Chart, Line, Tick
from manymatch.results.runs import Run

Points = list[tuple[int, float]]
"""(zeta, PMRP in percent), zeta rising."""

_WAYS = {"i2t": "image → text", "t2i": "text → image"}


def charts_over_zeta(setting: str, runs: Sequence[tuple[Run, int]]) -> list[Chart]:
    """A chart each way with a line for each run and its style; no chart where no run has values.

    `setting` names the gallery: `1k` or `5k`.
    """
    found = [
        (title, [(run.preset, style, _points(run, setting, way)) for run, style in runs])
        for way, title in _WAYS.items()
    ]
    lines = [(title, [line for line in of_way if line[2]]) for title, of_way in found]
    return [_chart(f"PMRP over zeta, {title}", of_way) for title, of_way in lines if of_way]


def _points(run: Run, setting: str, way: str) -> Points:
    prefix, suffix = f"pmrp.{setting}.zeta", f".{way}"
    return sorted(
        (int(key[len(prefix) : -len(suffix)]), value)
        for key, value in run.metrics.numbers().items()
        if key.startswith(prefix) and key.endswith(suffix)
    )


def _chart(title: str, runs: Sequence[tuple[str, int, Points]]) -> Chart:
    zetas = [zeta for *_, points in runs for zeta, _ in points]
    x_axis = Axis(zetas, whole=True)
    y_axis = Axis([value for *_, points in runs for _, value in points])
    lines = [_line(name, style, points, x_axis, y_axis) for name, style, points in runs]
    y_ticks = [Tick(tick.label, 100 - tick.at) for tick in y_axis.ticks()]
    return Chart(title, lines, x_axis.ticks(), y_ticks, unit="labels that may differ")


def _line(name: str, style: int, points: Points, x_axis: Axis, y_axis: Axis) -> Line:
    places = [(10 * x_axis.at(zeta), 1000 - 10 * y_axis.at(value)) for zeta, value in points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dots = [
        (f"{name}, zeta {zeta}: {value:.1f}", round(x, 1), round(y, 1))
        for (zeta, value), (x, y) in zip(points, places, strict=True)
    ]
    return Line(name, style, path, dots, ", ".join(f"{value:.1f}" for _, value in points))
