"""The stage `report`: all results on pages, and the leaderboard as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from manymatch.reporting import ablations, claims, leaderboard, page
from manymatch.reporting.dvc_plots import curve_tables
from manymatch.results.ablations import Ablation
from manymatch.results.all_results import AllResults
from manymatch.results.machine import git_revision, read_records
from manymatch.results.runs import Run
from manymatch.util import files
from manymatch.util.progress import working


def report(reports: Path) -> list[Run]:
    """Write `index.html`, `pages/*.html`, `leaderboard.{csv,md,tex}`, and what DVC draws,
    `plots/**/*.tsv`, in the folder `reports`.

    Reads all result files of the folder; curves and run files may be missing. The outputs are the
    same on every machine. What differs from run to run (date, revision, time, memory) is written
    to `machine/machine.js`, which the pages load if the file exists.

    Returns:
        The results of the leaderboard.

    Raises:
        DataError: there is no result, or a file is malformed. The message is one line with the
            file. Earlier outputs then stay as they were.
    """
    results = AllResults.read(reports)
    methods = [ablation for ablation in results.ablations if ablation.compares_methods]
    with working("draw the pages"):
        pages = page.render(results)
    outputs = {
        "leaderboard.csv": leaderboard.to_csv(results.runs),
        "leaderboard.md": _markdown(results, methods),
        "leaderboard.tex": _latex(results, methods),
        "index.html": pages.pop("index.html"),
        "machine/machine.js": _machine_script(reports),
    }
    for name, text in outputs.items():
        files.write_text(reports / name, text)
    with files.replacing(reports / "pages") as folder:
        folder.mkdir()
        for address, text in pages.items():
            (folder / Path(address).name).write_text(text, encoding="utf-8")
    with files.replacing(reports / "plots") as folder:
        folder.mkdir()
        for name, text in curve_tables(results.runs).items():
            files.write_text(folder / name, text)
    return results.runs


def _markdown(results: AllResults, methods: list[Ablation]) -> str:
    tables = [leaderboard.to_markdown(results.runs), *map(ablations.to_markdown, methods)]
    return "\n".join([*tables, *claims.to_markdown(results.ablations)])


def _latex(results: AllResults, methods: list[Ablation]) -> str:
    head = "% The tables need the package booktabs: \\usepackage{booktabs}"
    tables = [
        f"% {ablation.name}: {ablations.sizes(ablation)}\n"
        + ablations.table(ablation).to_latex(merge=True)
        for ablation in methods
    ]
    return "\n\n".join([head, leaderboard.to_latex(results.runs), *tables]) + "\n"


def _machine_script(reports: Path) -> str:
    """One assignment of all records below `reports/machine`, with the date and the commit."""
    records = read_records(reports / "machine")
    value = {
        "date": date.today().isoformat(),
        "revision": git_revision(reports),
        "results": {name: record.model_dump() for name, record in records.items()},
    }
    return f"window.MANYMATCH_MACHINE = {json.dumps(value, indent=1)};\n"
