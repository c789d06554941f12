"""The stage `report`: all results that are there, on one page and in one table."""

from __future__ import annotations

from pathlib import Path

from manymatch import files
from manymatch.progress import say
from manymatch.reporting import claims, leaderboard, page
from manymatch.reporting.ablations import read_ablations, to_markdown
from manymatch.reporting.clusters import read_clusters
from manymatch.reporting.costs import read_all_costs
from manymatch.reporting.results import read_runs
from manymatch.reporting.study_results import read_studies
from manymatch.reporting.synthetic import read_experiments


def report(reports: Path) -> None:
    """Write `index.html`, `leaderboard.csv` and `leaderboard.md` in the folder `reports`.

    Reads `metrics/D/P.json` and `provenance/D/P.json`, `ablations/D/N.json`, `clusters/D/P.json`,
    `synthetic/N.json`, `studies/D/P.json`, `efficiency/D.json`, and where they are on this machine
    `curves/D/P/` and `runs/D/P/samples.json`. Raises `DataError` (one line, with the file) if there
    is no result or a malformed one; earlier outputs then stay as they were.
    """
    runs, tried = read_runs(reports), read_ablations(reports)
    of_methods = [to_markdown(each) for each in tried if each.of_methods]
    outputs = {
        "index.html": page.render(
            runs,
            tried,
            read_clusters(reports),
            read_experiments(reports),
            read_studies(reports),
            read_all_costs(reports),
        ),
        "leaderboard.csv": leaderboard.to_csv(runs),
        "leaderboard.md": "\n".join(
            [leaderboard.to_markdown(runs), *of_methods, *claims.to_markdown(tried)]
        ),
    }
    for name, text in outputs.items():
        files.write_text(reports / name, text)
    say(f"{len(runs)} results: open {reports / 'index.html'}")
