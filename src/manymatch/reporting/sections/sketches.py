"""Experiments that retrieve images for sketches."""

from __future__ import annotations

from manymatch.reporting import sketches
from manymatch.reporting.blocks import Block, Bullets, Heading, Note, View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    blocks: list[Block] = []
    for experiment in map(sketches.view, results.sketches):
        blocks += [
            Heading(experiment.name),
            Note(experiment.about),
            experiment.table,
            Note(experiment.note),
            Bullets(experiment.differences),
        ]
    return View("Sketches to images", "Sketches to images", blocks) if blocks else None
