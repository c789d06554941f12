"""The leaderboard of a data set."""

from __future__ import annotations

from manymatch.reporting import leaderboard
from manymatch.reporting.blocks import Block, Note, Terms, View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    runs = results.runs
    if not runs:
        return None
    blocks: list[Block] = [Note(f"Scored on {leaderboard.sizes(runs)}.")]
    blocks += leaderboard.tables(runs)
    blocks.append(Terms(leaderboard.terms(runs)))
    if not any(run.metrics.multi for run in runs):
        note = "This data set has no judgments beyond the pairs, so there is no multi-match metric."
        blocks.append(Note(note))
    return View("Leaderboard", "Leaderboard", blocks)
