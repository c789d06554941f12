"""Training curves: the validation rsum of all runs, and the loss terms of each run."""

from __future__ import annotations

from collections.abc import Sequence

from manymatch.reporting.chart import Chart, Series, line_chart, styles
from manymatch.reporting.page import Section
from manymatch.reporting.table import Block, Grid, Heading, Note
from manymatch.results.all_results import AllResults
from manymatch.results.runs import Curve, Curves

_MAX_CHARTS = 12
"""The most loss terms of one run that are drawn."""

_VALIDATION = "validation/rsum"
_TRAINING = "train/"
_MISSING = (
    "The training curves of this run are not on this machine. 'dvc pull' fetches them; "
    "'dvc repro' makes them again."
)


def section(results: AllResults) -> list[Block]:
    """One chart of all runs, then the charts of each run that was trained."""
    number = styles(results.runs)
    chart = validation_chart([(run.preset, number[run.preset], run.curves) for run in results.runs])
    blocks: list[Block] = [chart] if chart else []
    for run in results.runs:
        if not run.kind:
            charts = loss_charts(run.curves, number[run.preset])
            small = "training loss, from the first to the last epoch" if charts else ""
            missing = Note("This run logged no loss terms." if run.curves else _MISSING)
            blocks += [
                Heading(run.preset, small, f"run-{run.preset}", number[run.preset]),
                Grid(charts, "small") if charts else missing,
            ]
    return blocks


def validation_chart(curves: Sequence[tuple[str, int, Curves]]) -> Chart | None:
    """The validation rsum of several runs (name, style, curves); None if no run has the curve."""
    series = [
        _series(name, style, curve, f"best {curve.best[1]:.1f} in epoch {curve.best[0] + 1:g}")
        for name, style, run in curves
        if (curve := run.get(_VALIDATION))
    ]
    return line_chart("Validation rsum", series, "epoch") if series else None


def loss_charts(curves: Curves, style: int) -> list[Chart]:
    """A chart for each training loss term of one run, each on its own scale."""
    terms = [curve for name, curve in curves.items() if name.startswith(_TRAINING)]
    return [
        line_chart(
            name,
            [_series(name, style, term, f"{term.points[0][1]:.3g} to {term.last:.3g}")],
            "epoch",
            legend=False,
        )
        for term in terms[:_MAX_CHARTS]
        for name in [term.name.removeprefix(_TRAINING)]
    ]


def _series(name: str, style: int, curve: Curve, summary: str) -> Series:
    """The curve with epochs from 1, as the log counts; dvclive counts steps from 0."""
    points = [(step + 1, value) for step, value in curve.points]
    labels = [f"{value:.4g} in epoch {epoch:g}" for epoch, value in points]
    return Series(name, style, points, summary, labels)


SECTIONS = [Section("Results", "training", 50, "Training", section)]
