"""The papers' claims, and whether the results confirm them."""

from __future__ import annotations

from manymatch.reporting import claims
from manymatch.reporting.blocks import Note, View
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    if not results.ablations:
        return None
    dataset = results.ablations[0].dataset
    findings = claims.check(dataset, results.ablations)
    if not findings:
        return None
    note = Note(f"{claims.MEANING} Mean ± standard deviation over the seeds.")
    table = claims.table(dataset, findings)
    return View("Do the papers' claims hold here?", "Claims", [table, note])
