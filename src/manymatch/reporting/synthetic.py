"""Experiments on synthetic pairs as tables: each point beside its paper's numbers, and whether it
is better than the one it is compared with by more than chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import get_args

from manymatch.reporting.estimates import VERDICTS, Estimate, ExperimentView, Table, against, judged
from manymatch.results.synthetic import Kind, SyntheticExperiment, SyntheticPoint

KINDS: tuple[Kind, ...] = get_args(Kind)


def table(experiment: SyntheticExperiment) -> Table:
    """Columns that no point has anything for are left out."""
    columns: dict[str, list[str]] = {"Setting": [point.label for point in experiment.points]}
    for kind in KINDS:
        columns[f"R@1, {kind}"] = [_r1(point, kind).text() for point in experiment.points]
        columns[f"published, {kind}"] = [_published(experiment, p, kind) for p in experiment.points]
        columns[f"Med-R, {kind}"] = [_medr(point, kind) for point in experiment.points]
    columns["Error of shares"] = [_error(point) for point in experiment.points]
    columns["Newton steps"] = [_steps(point) for point in experiment.points]
    columns["Seconds"] = [_seconds(point) for point in experiment.points]
    kept = {head: cells for head, cells in columns.items() if any(cells)}
    return Table(list(kept), [list(row) for row in zip(*kept.values(), strict=True)])


def _r1(point: SyntheticPoint, kind: Kind) -> Estimate:
    return Estimate.of([run.recall(kind).r1 for run in point.runs])


def _medr(point: SyntheticPoint, kind: Kind) -> str:
    return _range([run.recall(kind).medr for run in point.runs])


def _published(experiment: SyntheticExperiment, point: SyntheticPoint, kind: Kind) -> str:
    found = experiment.published.get(point.label, {}).get(kind)
    return "" if found is None else f"{found:.2f}"


def _error(point: SyntheticPoint) -> str:
    """The largest of the seeds'."""
    found = [run.assignment.error for run in point.runs if run.assignment]
    return f"{max(found):.2g}" if found else ""


def _steps(point: SyntheticPoint) -> str:
    found = [run.assignment.steps for run in point.runs if run.assignment]
    return _range(found) if found else ""


def _range(values: Sequence[float]) -> str:
    """The least and the greatest of the seeds'."""
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _seconds(point: SyntheticPoint) -> str:
    wall, processor = (
        statistics.fmean(getattr(run, clock) for run in point.runs)
        for clock in ("seconds", "processor_seconds")
    )
    return f"{wall:.0f} ({processor:.0f})"


def differences(experiment: SyntheticExperiment) -> list[str]:
    """A sentence for each point and kind but the baseline; see `estimates.judged`."""
    return [
        judged(
            f"{point.label} against {base.label}, {kind} R@1",
            {run.seed: run.recall(kind).r1 for run in point.runs},
            {run.seed: run.recall(kind).r1 for run in base.runs},
        )
        for point, base in against(experiment.points, experiment.baseline)
        for kind in KINDS
    ]


def note(experiment: SyntheticExperiment) -> str:
    """What the columns mean."""
    seeds = ", ".join(map(str, experiment.seeds))
    parts = [
        f"Test R@1 in percent, mean ± standard deviation (standard error) of seeds {seeds}.",
        "Med-R: the median rank.",
    ]
    if experiment.published:
        parts.append("Published: as the paper prints it, not run here.")
    if any(run.assignment for point in experiment.points for run in point.runs):
        parts.append(
            "Error of shares: how far a class's share of the last queue is from an equal one at "
            "most, in samples; Newton steps: how many solve that queue to 1e-4."
        )
    parts.append("Seconds of one run by the clock (of the processor).")
    if experiment.baseline:
        parts.append(VERDICTS)
    return " ".join(parts)


def to_markdown(experiment: SyntheticExperiment) -> str:
    """The table, and what it says about chance."""
    return view(experiment).to_markdown()


def view(experiment: SyntheticExperiment) -> ExperimentView:
    """All that the page says about `experiment`."""
    return ExperimentView(
        experiment.name,
        experiment.about,
        table(experiment),
        note(experiment),
        differences(experiment),
    )
