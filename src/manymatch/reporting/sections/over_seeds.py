"""Experiments with data of their own, each point over its seeds: a table, what the columns mean,
and whether a point is better than the baseline by more than chance.

Synthetic pairs stand beside the paper's numbers of the same points. Sketches stand above the rows
that the papers print of the same data set.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from manymatch.reporting.estimates import (
    COLLAPSED_SEEDS,
    TRAINED_TITLE,
    VERDICTS,
    Difference,
    Estimate,
    verdicts,
)
from manymatch.reporting.page import Section
from manymatch.reporting.published import published_results
from manymatch.reporting.table import Block, Cell, Column, Folded, Heading, Note, Prose, Table
from manymatch.results.all_results import AllResults
from manymatch.results.base import Result
from manymatch.results.experiments import Relevance, SketchExperiment, SyntheticExperiment

KINDS: tuple[Relevance, ...] = get_args(Relevance)
METRICS = {"map": "mAP", "map_at_200": "mAP@200", "p_at_200": "P@200"}
"""The metrics of sketches in the result files, with the names that the papers use."""

Values = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Values by point, measure and seed."""

_HEADS = ("R@1", f"R@1 {TRAINED_TITLE}", "published", "Med-R")


def synthetic(experiment: SyntheticExperiment) -> list[Block]:
    """An experiment on synthetic pairs. Columns without a value are left out."""
    values: Values = {
        point.label: {
            f"{kind} R@1": {run.seed: run.recall(kind).r1 for run in point.runs} for kind in KINDS
        }
        for point in experiment.points
    }
    rows = []
    for point in experiment.points:
        texts = [point.label]
        for kind in KINDS:
            published = experiment.published.get(point.label, {}).get(kind)
            r1 = Estimate.score_estimate(values[point.label][f"{kind} R@1"].values())
            texts += [
                r1.text_with_error(),
                r1.trained_text(2),
                "" if published is None else f"{published:.2f}",
                _range([run.recall(kind).medr for run in point.runs]),
            ]
        fits = [run.assignment for run in point.runs if run.assignment]
        texts.append(f"{max(fit.error for fit in fits):.2g}" if fits else "")
        steps = [fit.steps for fit in fits if fit.steps is not None]
        texts.append(_range(steps) if steps else "")
        wall = statistics.fmean(run.seconds for run in point.runs)
        processor = statistics.fmean(run.processor_seconds for run in point.runs)
        rows.append([*map(Cell, texts), Cell(f"{wall:.0f} ({processor:.0f})")])
    heads = [f"{head}, {kind}" for kind in KINDS for head in _HEADS]
    heads += ["Error of shares", "Newton steps", "Seconds"]
    columns = [Column("Setting", numeric=False), *map(Column, heads)]
    table = Table(experiment.name, columns, rows).filled_columns()
    notes = {
        f"Test R@1 in percent, mean ± standard deviation (standard error) of seeds "
        f"{', '.join(map(str, experiment.seeds))}. {COLLAPSED_SEEDS} Med-R: the median rank.": True,
        "Published: as the paper prints the number, not run here.": experiment.published,
        "Error of shares: the largest difference, in samples, between a class's share of the "
        "last queue and an equal share. Newton steps: the steps that solve the last queue "
        "to 1e-4.": any(run.assignment for point in experiment.points for run in point.runs),
        "Seconds of one run on the clock (on the processor).": True,
        VERDICTS: experiment.baseline,
    }
    note = " ".join(text for text, holds in notes.items() if holds)
    return _blocks(experiment, table, note, values)


def sketches(experiment: SketchExperiment) -> list[Block]:
    """An experiment on sketches: our points, then the papers' rows, marked as published."""
    values: Values = {
        point.label: {
            shown: {run.seed: getattr(run, name) for run in point.runs}
            for name, shown in METRICS.items()
        }
        for point in experiment.points
    }
    rows = []
    for point in experiment.points:
        by_metric = values[point.label].values()
        estimates = [Estimate.score_estimate(by_seed.values()) for by_seed in by_metric]
        texts = [point.label, "run here", *(one.text_with_error() for one in estimates)]
        seconds = statistics.fmean(run.seconds for run in point.runs)
        rows.append([*map(Cell, [*texts, estimates[0].trained_text(2), f"{seconds:.0f}"])])
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
    heads = [*METRICS.values(), f"{METRICS['map']} {TRAINED_TITLE}", "Seconds"]
    columns = [*(Column(head, numeric=False) for head in ("Method", "From")), *map(Column, heads)]
    note = (
        "Percent, over sketches of classes that are not in the training data; every image of the "
        "class is a positive. mAP@200 divides by the number of positives among the first 200 "
        "images. Ours: mean ± standard deviation (standard error) of seeds "
        f"{', '.join(map(str, experiment.seeds))}. {COLLAPSED_SEEDS} {VERDICTS}"
    )
    table = Table(experiment.name, columns, rows).filled_columns()
    return _blocks(experiment, table, note, values)


def _blocks(
    experiment: SyntheticExperiment | SketchExperiment, table: Table, note: str, values: Values
) -> list[Block]:
    """The blocks, with a sentence for each measure of each point but the baseline: by how much the
    point is ahead of the baseline, and the verdict. Differences that are not decided are folded."""
    baseline = experiment.baseline
    compared = {
        f"{label} against {baseline}, {measure}": Difference.of(measures[measure], other)
        for label, measures in values.items()
        if label != baseline
        for measure, other in values.get(baseline or "", {}).items()
    }
    decided, others = list[list[Cell]](), list[list[Cell]]()
    decisions = verdicts([*compared.values()])
    for (subject, difference), verdict in zip(compared.items(), decisions, strict=True):
        place = others if verdict == "not decided" else decided
        place.append([Cell(f"{subject}: {difference.text()}: {verdict}.")])
    about = Note(experiment.about)
    if others:
        count = f"{len(others)} of {len(compared)} differences from {baseline} are not decided."
        decided.append([Cell(count)])
    folded = [Folded("The differences that are not decided", [Prose(others)])] if others else []
    return [Heading(experiment.name), about, table, Note(note), Prose(decided), *folded]


def _range(values: Sequence[float]) -> str:
    least, most = min(values), max(values)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _section(
    anchor: str, place: int, title: str, kind: type[Result], blocks: Callable[[Any], list[Block]]
) -> Section:
    def view(results: AllResults) -> list[Block]:
        return [block for one in results.current(kind) for block in blocks(one)]

    return Section("Other experiments", anchor, place, title, view, (kind,))


SECTIONS = [
    _section("synthetic", 220, "Synthetic pairs", SyntheticExperiment, synthetic),
    _section("sketches", 230, "Sketches to images", SketchExperiment, sketches),
]
