"""Experiments with data of their own, each point over its seeds: a table, what the columns mean,
and whether a point is better than the baseline by more than chance.

Synthetic pairs stand beside the paper's numbers of the same points. Sketches stand above the rows
that the papers print of the same data set.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from manymatch.reporting.blocks import Block, Bullets, Heading, Note, View
from manymatch.reporting.estimates import (
    COLLAPSED_SEEDS,
    TRAINED_TITLE,
    VERDICTS,
    Difference,
    Estimate,
    verdicts,
)
from manymatch.reporting.published import published_results
from manymatch.reporting.section import Section
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.all_results import AllResults
from manymatch.results.over_seeds import (
    Kind,
    SketchExperiment,
    SketchRun,
    SyntheticExperiment,
    SyntheticPoint,
)

KINDS: tuple[Kind, ...] = get_args(Kind)
METRICS = {"map": "mAP", "map_at_200": "mAP@200", "p_at_200": "P@200"}
"""The metrics of sketches in the result files, with the names that the papers use."""

_HEADS = ("R@1", f"R@1 {TRAINED_TITLE}", "published", "Med-R")

Values = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Values by point, measure and seed."""

_SKETCHES_NOTE = (
    "Percent, over sketches of classes that are not in the training data; every image of the class "
    "is a positive. mAP@200 divides by the number of positives among the first 200 images. "
    f"Ours: mean ± standard deviation (standard error) of seeds {{seeds}}. {COLLAPSED_SEEDS} "
    + VERDICTS
)


def synthetic(experiment: SyntheticExperiment) -> list[Block]:
    """An experiment on synthetic pairs."""
    values = {
        point.label: {
            f"{kind} R@1": {run.seed: run.recall(kind).r1 for run in point.runs} for kind in KINDS
        }
        for point in experiment.points
    }
    return _blocks(experiment, synthetic_table(experiment), _synthetic_note(experiment), values)


def sketches(experiment: SketchExperiment) -> list[Block]:
    """An experiment on sketches."""
    values = {
        point.label: {shown: _seed_values(point.runs, name) for name, shown in METRICS.items()}
        for point in experiment.points
    }
    note = _SKETCHES_NOTE.format(seeds=_seeds(experiment))
    return _blocks(experiment, sketches_table(experiment), note, values)


def synthetic_section(results: AllResults) -> View | None:
    return _section("Synthetic pairs", map(synthetic, results.current(SyntheticExperiment)))


def sketches_section(results: AllResults) -> View | None:
    return _section("Sketches to images", map(sketches, results.current(SketchExperiment)))


def _section(title: str, experiments: Iterable[list[Block]]) -> View | None:
    blocks = [block for experiment in experiments for block in experiment]
    return View(title, title, blocks) if blocks else None


def _blocks(
    experiment: SyntheticExperiment | SketchExperiment, table: Table, note: str, values: Values
) -> list[Block]:
    """The blocks, with a sentence for each measure of each point but the baseline: by how much the
    point is ahead of the baseline, and the verdict."""
    baseline = experiment.baseline
    compared = {
        f"{label} against {baseline}, {measure}": Difference.of(measures[measure], other)
        for label, measures in values.items()
        if label != baseline
        for measure, other in values.get(baseline or "", {}).items()
    }
    sentences = [
        f"{subject}: {difference.text()}: {verdict}."
        for (subject, difference), verdict in zip(
            compared.items(), verdicts([*compared.values()]), strict=True
        )
    ]
    notes = Note(experiment.about), Note(note)
    return [Heading(experiment.name), notes[0], table, notes[1], Bullets(sentences)]


def synthetic_table(experiment: SyntheticExperiment) -> Table:
    """One row for each point; columns without a value are left out."""
    columns = ["Setting"]
    columns += [f"{head}, {kind}" for kind in KINDS for head in _HEADS]
    columns += ["Error of shares", "Newton steps", "Seconds"]
    rows = []
    for point in experiment.points:
        texts = [point.label]
        for kind in KINDS:
            recalls = [run.recall(kind) for run in point.runs]
            published = experiment.published.get(point.label, {}).get(kind)
            r1 = Estimate.score_estimate([recall.r1 for recall in recalls])
            texts += [
                r1.text_with_error(),
                r1.trained_text(2),
                "" if published is None else f"{published:.2f}",
                _range([recall.medr for recall in recalls]),
            ]
        wall = statistics.fmean(run.seconds for run in point.runs)
        processor = statistics.fmean(run.processor_seconds for run in point.runs)
        texts += [*_assignment(point), f"{wall:.0f} ({processor:.0f})"]
        rows.append([*map(Cell, texts)])
    titles = [Column(title, numeric=title != "Setting") for title in columns]
    return Table(experiment.name, titles, rows).filled_columns()


def _assignment(point: SyntheticPoint) -> list[str]:
    """The largest error of the seeds, and the range of their Newton steps."""
    fits = [run.assignment for run in point.runs if run.assignment]
    if not fits:
        return ["", ""]
    return [f"{max(fit.error for fit in fits):.2g}", _range([fit.steps for fit in fits])]


def _range(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _synthetic_note(experiment: SyntheticExperiment) -> str:
    parts = [
        "Test R@1 in percent, mean ± standard deviation (standard error) of seeds "
        f"{_seeds(experiment)}.",
        COLLAPSED_SEEDS,
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


def _seeds(experiment: SyntheticExperiment | SketchExperiment) -> str:
    return ", ".join(map(str, experiment.seeds))


def _seed_values(runs: Sequence[SketchRun], metric: str) -> dict[int, float]:
    return {run.seed: getattr(run, metric) for run in runs}


def sketches_table(experiment: SketchExperiment) -> Table:
    """Our points, then the papers' rows, marked as published."""
    estimates = [
        [
            Estimate.score_estimate([*_seed_values(point.runs, metric).values()])
            for metric in METRICS
        ]
        for point in experiment.points
    ]
    rows = [
        [
            Cell(point.label),
            Cell("run here"),
            *(Cell(estimate.text_with_error()) for estimate in point_estimates),
            Cell(point_estimates[0].trained_text(2)),
            Cell(f"{statistics.fmean(run.seconds for run in point.runs):.0f}"),
        ]
        for point, point_estimates in zip(experiment.points, estimates, strict=True)
    ]
    rows += [
        [
            Cell(result.method),
            Cell(badges=("published",), note=f"{result.paper}, {result.section}"),
            *(Cell(f"{result.values[key]:g}" if key in result.values else "") for key in METRICS),
            Cell(),
            Cell(),
        ]
        for result in published_results()
        if result.dataset == experiment.dataset
    ]
    heads = [Column(title, numeric=False) for title in ("Method", "From")]
    titles = [*METRICS.values(), f"{METRICS['map']} {TRAINED_TITLE}", "Seconds"]
    return Table(experiment.name, [*heads, *map(Column, titles)], rows).filled_columns()


SECTIONS = [
    Section("Other experiments", "synthetic", 220, synthetic_section, (SyntheticExperiment,)),
    Section("Other experiments", "sketches", 230, sketches_section, (SketchExperiment,)),
]
