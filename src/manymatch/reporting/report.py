"""The stage `report`: all results on pages, and the leaderboard as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from manymatch.reporting import page
from manymatch.reporting.dvc_plots import curve_tables
from manymatch.reporting.section import Texts, all_sections
from manymatch.reporting.sections import leaderboard
from manymatch.results.all_results import AllResults
from manymatch.results.machine import git_revision, read_records
from manymatch.results.runs import Run
from manymatch.util import files
from manymatch.util.progress import working

_LATEX_HEAD = "% The tables need the package booktabs: \\usepackage{booktabs}"


def report(reports: Path, plans: Path) -> list[Run]:
    """Write `index.html`, `pages/*.html`, `leaderboard.{csv,md,tex}`, and what DVC draws,
    `plots/**/*.tsv`, in the folder `reports`.

    Reads all result files of the folder, and the claims in the folder `plans` of experiments;
    curves and run files may be missing. The outputs are the same on every machine. What differs
    from run to run (date, revision, time, memory) is written to `machine/machine.js`, which the
    pages load if the file exists.

    Returns:
        The results of the leaderboard.

    Raises:
        DataError: there is no result, or a file is malformed. The message is one line with the
            file. Earlier outputs then stay as they were.
        ConfigError: a claim is wrong; as for a malformed file.
    """
    results = read(reports, plans)
    with working("draw the pages"):
        pages = page.render(results)
    outputs = {
        "leaderboard.csv": leaderboard.to_csv(results.runs),
        "leaderboard.md": "\n".join(_texts(results, [one.markdown for one in all_sections()])),
        "leaderboard.tex": "\n\n".join(
            [_LATEX_HEAD, *_texts(results, [one.latex for one in all_sections()])]
        )
        + "\n",
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


def read(reports: Path, plans: Path) -> AllResults:
    """All results that a section shows, and the claims about them; see `AllResults.read`."""
    return AllResults.read(reports, plans, [kind for one in all_sections() for kind in one.kinds])


def _texts(results: AllResults, parts: list[Texts | None]) -> list[str]:
    return [text for part in parts if part for text in part(results)]


def _machine_script(reports: Path) -> str:
    """One assignment of all records below `reports/machine`, with the date and the commit."""
    records = read_records(reports / "machine")
    value = {
        "date": date.today().isoformat(),
        "revision": git_revision(reports),
        "results": {name: record.model_dump() for name, record in records.items()},
    }
    return f"window.MANYMATCH_MACHINE = {json.dumps(value, indent=1)};\n"
