"""Our results beside the papers' results."""

from __future__ import annotations

from collections.abc import Sequence

from manymatch.reporting.blocks import Block, Folded, Grid, Heading, Note, View
from manymatch.reporting.chart import Chart, Series, line_chart
from manymatch.reporting.comparison import comparisons
from manymatch.reporting.leaderboard import styles
from manymatch.results.all_results import AllResults
from manymatch.results.runs import WAYS, Run


def section(results: AllResults) -> View | None:
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
    if not blocks:
        return None
    note = Note(
        "Published rows are as a paper prints them, on the paper's data and settings. A row that "
        "several papers print is shown once. Only our reproduced rows should be compared with "
        "published rows."
    )
    return View("Beside the papers' numbers", "Published", [note, *blocks])


def charts_over_zeta(setting: str, runs: Sequence[Run], styles: dict[str, int]) -> list[Chart]:
    """PMRP over zeta, the number of object labels that may differ (MSRM, figure 7): one chart for
    each direction, with a line for each run that has values. `setting` is the gallery, `1k` or
    `5k`."""
    charts = []
    for way, title in WAYS.items():
        series = [
            Series(
                run.preset,
                styles[run.preset],
                points,
                ", ".join(f"{value:.1f}" for _, value in points),
                [f"zeta {zeta}: {value:.1f}" for zeta, value in points],
            )
            for run in runs
            if (points := _points(run, setting, way))
        ]
        if series:
            chart = line_chart(f"PMRP over zeta, {title}", series, "labels that may differ")
            charts.append(chart)
    return charts


def _points(run: Run, setting: str, way: str) -> list[tuple[int, float]]:
    prefix, suffix = f"pmrp.{setting}.zeta", f".{way}"
    return sorted(
        (int(key[len(prefix) : -len(suffix)]), value)
        for key, value in run.metrics.numbers().items()
        if key.startswith(prefix) and key.endswith(suffix)
    )
