"""Experiments on sketches as tables: each point over its seeds, then what the papers print of the
same data set."""

from __future__ import annotations

import statistics

from manymatch.reporting.blocks import View
from manymatch.reporting.estimates import (
    VERDICTS,
    Estimate,
    ExperimentTable,
    differences,
    section_of,
)
from manymatch.reporting.published import published_results
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.all_results import AllResults
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


def view(experiment: SketchExperiment) -> ExperimentTable:
    """The experiment as the page and Markdown show it."""
    values = {
        point.label: {shown: point.values(name) for name, shown in METRICS.items()}
        for point in experiment.points
    }
    return ExperimentTable(
        experiment.name,
        experiment.about,
        table(experiment),
        _NOTE.format(seeds=", ".join(map(str, experiment.seeds))),
        differences(values, experiment.baseline),
    )


def section(results: AllResults) -> View | None:
    return section_of("Sketches to images", map(view, results.sketches))
