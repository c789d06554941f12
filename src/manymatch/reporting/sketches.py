"""Experiments on sketches as tables: each point over its seeds, then what papers print of the same
data set."""

from __future__ import annotations

import statistics

from manymatch.reporting.estimates import VERDICTS, Estimate, ExperimentView, Table, against, judged
from manymatch.reporting.published_results import published_results
from manymatch.results.sketches import SketchExperiment, SketchPoint

METRICS = {"map": "mAP", "map_at_200": "mAP@200", "p_at_200": "P@200"}
"""As they are called in the files, and as papers call them."""
_NOTE = (
    "Percent, over sketches of classes that no training has seen; every image of the class is "
    "right. mAP@200 divides by the right images among the first 200. "
)


def view(found: SketchExperiment) -> ExperimentView:
    """All that the page says about `found`."""
    seeds = ", ".join(map(str, found.seeds))
    spread = f"Ours: mean ± standard deviation (standard error) of seeds {seeds}. {VERDICTS}"
    return ExperimentView(found.name, found.about, table(found), _NOTE + spread, differences(found))


def table(found: SketchExperiment) -> Table:
    """Our points, then the papers' rows, marked as published."""
    ours = [[point.label, "run here", *_cells(point)] for point in found.points]
    return Table(["Method", "From", *METRICS.values(), "Seconds"], [*ours, *_theirs(found.dataset)])


def _cells(point: SketchPoint) -> list[str]:
    estimates = [Estimate.of([*point.values(metric).values()]).text() for metric in METRICS]
    return [*estimates, f"{statistics.fmean(point.values('seconds').values()):.0f}"]


def _theirs(dataset: str) -> list[list[str]]:
    rows = [each for each in published_results() if each.dataset == dataset]
    return [
        [
            each.method,
            f"published: {each.paper}, {each.section}",
            *(f"{each.values[name]:g}" if name in each.values else "-" for name in METRICS),
            "",
        ]
        for each in rows
    ]


def differences(found: SketchExperiment) -> list[str]:
    """A sentence for each point and metric but the baseline; see `estimates.judged`."""
    return [
        judged(
            f"{point.label} against {base.label}, {shown}", point.values(name), base.values(name)
        )
        for point, base in against(found.points, found.baseline)
        for name, shown in METRICS.items()
    ]
