"""Whole methods over several seeds."""

from __future__ import annotations

from manymatch.reporting import ablations
from manymatch.reporting.blocks import Block, Heading, Note, View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    """The tables alone; the section on experiments has the charts."""
    blocks: list[Block] = []
    for ablation in results.ablations:
        if ablation.of_methods:
            blocks.append(Heading(ablation.name, ablations.sizes(ablation)))
            blocks += [Note(ablation.about)] if ablation.about else []
            blocks.append(ablations.table(ablation))
    return View("Methods over several seeds", "Seeds", blocks) if blocks else None
