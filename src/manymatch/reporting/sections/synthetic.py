"""Experiments on synthetic pairs."""

from __future__ import annotations

from manymatch.reporting import synthetic
from manymatch.reporting.blocks import Block, Bullets, Heading, Note, View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    blocks: list[Block] = []
    for experiment in map(synthetic.view, results.synthetic):
        blocks += [
            Heading(experiment.name),
            Note(experiment.about),
            experiment.table,
            Note(experiment.note),
            Bullets(experiment.differences),
        ]
    return View("Synthetic pairs", "Synthetic pairs", blocks) if blocks else None
