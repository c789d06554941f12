"""The report, and the results on the pages of the documentation."""

from __future__ import annotations

from pathlib import Path

import typer

from manymatch import __version__
from manymatch.cli import project
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT

commands = typer.Typer()


_REPORT = "index.html", "pages", "plots", "leaderboard.csv", "leaderboard.md", "leaderboard.tex"


@commands.command()
@writes(*(LAYOUT.reports / name for name in _REPORT))
def report() -> None:
    """Write reports/index.html, reports/pages and the leaderboard from all results."""
    from manymatch.reporting import report as stage
    from manymatch.reporting.sections import leaderboard
    from manymatch.reporting.terminal import show

    project.require_project()
    runs = stage.report(LAYOUT.reports, LAYOUT.plans)
    show(leaderboard.blocks(runs), LAYOUT.reports / "index.html")


@commands.command()
@writes(Path("README.md"), Path("docs/results.md"))
def readme() -> None:
    """Copy the results into docs/results.md and README.md, between the markers."""
    from manymatch.reporting.readme import update_pages

    project.require_project()
    board = LAYOUT.reports / "leaderboard.md"
    update_pages(Path("README.md"), Path("docs/results.md"), board)


@commands.command("plots-page")
@writes(LAYOUT.plots_page)
def plots_page() -> None:
    """Write .dvc/plots.html, with which 'dvc plots show' needs no network.

    'dvc config --local plots.html_template plots.html' makes DVC use the page.
    """
    from manymatch.reporting.dvc_plots import offline_page
    from manymatch.util import files

    files.write_text(LAYOUT.plots_page, offline_page())


@commands.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
