"""Experiments on synthetic pairs."""

from __future__ import annotations

from manymatch.reporting import synthetic
from manymatch.reporting.blocks import View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    blocks = [
        block for experiment in results.synthetic for block in synthetic.view(experiment).blocks()
    ]
    return View("Synthetic pairs", "Synthetic pairs", blocks) if blocks else None
