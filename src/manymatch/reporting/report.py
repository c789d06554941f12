"""The stage `report`: all results that are there, on one page and in one table."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from manymatch.reporting import claims, leaderboard, page
from manymatch.reporting.ablations import to_markdown
from manymatch.results.all_results import AllResults
from manymatch.system import files
from manymatch.system.machine import git_revision, read_records
from manymatch.system.progress import say


def report(reports: Path) -> None:
    """Write `index.html`, `leaderboard.csv` and `leaderboard.md` in the folder `reports`.

    These files are the same on every machine. What differs from run to run (date, revision, time,
    memory) goes to `machine/machine.js`, which the page loads if the file is there.

    Reads `results/D/P.json` and `provenance/D/P.json`, `ablations/D/N.json`, `clusters/D/P.json`,
    `synthetic/N.json`, `sketches/N.json`, `studies/D/P.json`, `efficiency/D.json`, and where they
    are on this machine `curves/D/P/` and `runs/D/P/samples.json`. Raises `DataError` (one line,
    with the file) if there is no result or a malformed one; earlier outputs then stay as they were.
    """
    results = AllResults.read(reports)
    of_methods = [to_markdown(each) for each in results.ablations if each.of_methods]
    tables = [leaderboard.to_markdown(results.runs), *of_methods]
    outputs = {
        "index.html": page.render(results),
        "leaderboard.csv": leaderboard.to_csv(results.runs),
        "leaderboard.md": "\n".join([*tables, *claims.to_markdown(results.ablations)]),
    }
    outputs["machine/machine.js"] = _machine_script(reports)
    for name, text in outputs.items():
        files.write_text(reports / name, text)
    say(f"{len(results.runs)} results: open {reports / 'index.html'}")


def _machine_script(reports: Path) -> str:
    """One assignment of everything under `reports/machine`, with today's date and the commit."""
    records = read_records(reports / "machine")
    value = {
        "date": date.today().isoformat(),
        "revision": git_revision(reports),
        "results": {name: record.model_dump() for name, record in records.items()},
    }
    return f"window.MANYMATCH_MACHINE = {json.dumps(value, indent=1)};\n"
