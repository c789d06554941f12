"""R@K over K, from the run files of the models."""

from __future__ import annotations

from manymatch.reporting.blocks import Grid, Note, View
from manymatch.reporting.chart import LogAxis, Series, line_chart
from manymatch.reporting.leaderboard import styles
from manymatch.results.all_results import AllResults
from manymatch.results.runs import Direction, Run

_WAYS: tuple[tuple[Direction, str], ...] = (("i2t", "image → text"), ("t2i", "text → image"))

_KNOWN = (1, 5, 10)
"""The K for which the metrics hold R@K."""

_DRAWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def section(results: AllResults) -> View | None:
    """Both directions, a line for each run."""
    if not results.runs:
        return None
    number = styles(results.runs)
    charts = []
    for way, title in _WAYS:
        series = [
            Series(
                run.preset,
                number[run.preset],
                points,
                f"R@{points[-1][0]} {points[-1][1]:.1f}",
                [f"R@{k} {value:.1f}" for k, value in points],
            )
            for run in results.runs
            for points in [_points(run, way)]
        ]
        axis = LogAxis([k for line in series for k, _ in line.points])
        charts.append(line_chart(f"R@K, {title}", series, "K", x_axis=axis))
    note = Note(
        "Percent of queries with at least one of their pairs among the first K answers. The "
        "values between 1, 5 and 10 and beyond 10 come from the run files. A run without a "
        "usable run file has only the three values of its metrics."
    )
    return View("Recall over K", "Recall", [Grid(charts, "wide"), note])


def _points(run: Run, way: Direction) -> list[tuple[int, float]]:
    numbers, ranks = run.metrics.numbers(), run.positive_ranks[way]
    points = {k: numbers[f"{way}.r{k}"] for k in _KNOWN}
    if ranks:
        points |= {k: ranks.recall(k) for k in _DRAWN if k <= ranks.depth}
    return sorted(points.items())
