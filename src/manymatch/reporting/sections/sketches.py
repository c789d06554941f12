"""Experiments that retrieve images for sketches."""

from __future__ import annotations

from manymatch.reporting import sketches
from manymatch.reporting.blocks import View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    blocks = [
        block for experiment in results.sketches for block in sketches.view(experiment).blocks()
    ]
    return View("Sketches to images", "Sketches to images", blocks) if blocks else None
