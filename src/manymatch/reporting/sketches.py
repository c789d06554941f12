"""Experiments on sketches as tables: each point over its seeds, then what the papers print of the
same data set."""

from __future__ import annotations

import statistics

from manymatch.reporting.estimates import (
    VERDICTS,
    Estimate,
    ExperimentTable,
    judged,
    with_baseline,
)
from manymatch.reporting.published_results import published_results
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.sketches import SketchExperiment

METRICS = {"map": "mAP", "map_at_200": "mAP@200", "p_at_200": "P@200"}
"""The metrics of the result files, with the names that the papers use."""

_NOTE = (
    "Percent, over sketches of classes that are not in the training data; every image of the class "
    "is a positive. mAP@200 divides by the number of positives among the first 200 images. "
    "Ours: mean ± standard deviation (standard error) of seeds {seeds}. " + VERDICTS
)


def table(experiment: SketchExperiment) -> Table:
    """Our points, then the papers' rows, marked as published."""
    rows = [
        [
            Cell(point.label),
            Cell("run here"),
            *(
                Cell(Estimate.of([*point.values(metric).values()]).text_with_error())
                for metric in METRICS
            ),
            Cell(f"{statistics.fmean(point.values('seconds').values()):.0f}"),
        ]
        for point in experiment.points
    ]
    rows += [
        [
            Cell(result.method),
            Cell(badges=("published",), note=f"{result.paper}, {result.section}"),
            *(Cell(f"{result.values[key]:g}" if key in result.values else "") for key in METRICS),
            Cell(),
        ]
        for result in published_results()
        if result.dataset == experiment.dataset
    ]
    heads = [Column(title, numeric=False) for title in ("Method", "From")]
    return Table(experiment.name, [*heads, *map(Column, [*METRICS.values(), "Seconds"])], rows)


def differences(experiment: SketchExperiment) -> list[str]:
    """A sentence for each metric and each point but the baseline; see `estimates.judged`."""
    return [
        judged(
            f"{point.label} against {base.label}, {shown}", point.values(name), base.values(name)
        )
        for point, base in with_baseline(experiment.points, experiment.baseline)
        for name, shown in METRICS.items()
    ]


def view(experiment: SketchExperiment) -> ExperimentTable:
    """The experiment as the page and Markdown show it."""
    note = _NOTE.format(seeds=", ".join(map(str, experiment.seeds)))
    return ExperimentTable(
        experiment.name, experiment.about, table(experiment), note, differences(experiment)
    )
