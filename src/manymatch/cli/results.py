"""The report, and the results table in README.md."""

from __future__ import annotations

from pathlib import Path

import typer

from manymatch import __version__
from manymatch.cli.project import LAYOUT

commands = typer.Typer()


@commands.command()
def report() -> None:
    """Write reports/index.html and the leaderboard from all results under reports."""
    from manymatch.reporting import report as stage

    stage.report(LAYOUT.reports)


@commands.command()
def readme() -> None:
    """Copy the leaderboard into README.md, between its results markers."""
    from manymatch.reporting import leaderboard

    leaderboard.update_readme(Path("README.md"), LAYOUT.reports / "leaderboard.md")


@commands.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)
