"""Experiments on synthetic pairs as tables: each point beside its paper's numbers, and whether the
point is better than the baseline by more than chance."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import get_args

from manymatch.reporting.blocks import View
from manymatch.reporting.estimates import (
    VERDICTS,
    Estimate,
    ExperimentTable,
    differences,
    section_of,
)
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.all_results import AllResults
from manymatch.results.synthetic import Kind, SyntheticExperiment, SyntheticPoint

KINDS: tuple[Kind, ...] = get_args(Kind)


def table(experiment: SyntheticExperiment) -> Table:
    """One row for each point; columns without a value are left out."""
    columns = ["Setting"]
    columns += [f"{head}, {kind}" for kind in KINDS for head in ("R@1", "published", "Med-R")]
    columns += ["Error of shares", "Newton steps", "Seconds"]
    rows = []
    for point in experiment.points:
        texts = [point.label]
        for kind in KINDS:
            recalls = [run.recall(kind) for run in point.runs]
            published = experiment.published.get(point.label, {}).get(kind)
            texts += [
                Estimate.of([recall.r1 for recall in recalls]).text_with_error(),
                "" if published is None else f"{published:.2f}",
                _range([recall.medr for recall in recalls]),
            ]
        rows.append([*map(Cell, [*texts, *_assignment(point), _seconds(point)])])
    titles = [Column(title, numeric=title != "Setting") for title in columns]
    return Table(experiment.name, titles, rows).without_empty_columns()


def _assignment(point: SyntheticPoint) -> list[str]:
    """The largest error of the seeds, and the range of their Newton steps."""
    fits = [run.assignment for run in point.runs if run.assignment]
    if not fits:
        return ["", ""]
    return [f"{max(fit.error for fit in fits):.2g}", _range([fit.steps for fit in fits])]


def _range(values: Sequence[float]) -> str:
    """The least and the greatest value."""
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _seconds(point: SyntheticPoint) -> str:
    wall = statistics.fmean(run.seconds for run in point.runs)
    processor = statistics.fmean(run.processor_seconds for run in point.runs)
    return f"{wall:.0f} ({processor:.0f})"


def note(experiment: SyntheticExperiment) -> str:
    """What the columns mean."""
    seeds = ", ".join(map(str, experiment.seeds))
    parts = [
        f"Test R@1 in percent, mean ± standard deviation (standard error) of seeds {seeds}.",
        "Med-R: the median rank.",
    ]
    if experiment.published:
        parts.append("Published: as the paper prints the number, not run here.")
    if any(run.assignment for point in experiment.points for run in point.runs):
        parts.append(
            "Error of shares: the largest difference, in samples, between a class's share of the "
            "last queue and an equal share. Newton steps: the steps that solve the last queue "
            "to 1e-4."
        )
    parts.append("Seconds of one run on the clock (on the processor).")
    if experiment.baseline:
        parts.append(VERDICTS)
    return " ".join(parts)


def view(experiment: SyntheticExperiment) -> ExperimentTable:
    """The experiment as the page and Markdown show it."""
    values = {
        point.label: {
            f"{kind} R@1": {run.seed: run.recall(kind).r1 for run in point.runs} for kind in KINDS
        }
        for point in experiment.points
    }
    return ExperimentTable(
        experiment.name,
        experiment.about,
        table(experiment),
        note(experiment),
        differences(values, experiment.baseline),
    )


def section(results: AllResults) -> View | None:
    return section_of("Synthetic pairs", map(view, results.synthetic))
