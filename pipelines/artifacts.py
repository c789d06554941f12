"""The artifacts on the page of a finished run: metrics, their changes, a link to the report."""

from __future__ import annotations

import os
from collections.abc import Sequence

from prefect.artifacts import create_link_artifact, create_markdown_artifact

from manymatch.config.layout import Layout
from manymatch.reporting import leaderboard
from manymatch.results.runs import Run, read_runs
from pipelines import process
from pipelines.graph import Stage

LAYOUT = Layout()
METRICS = LAYOUT.reports / "metrics"
REPORT_URL = "MANYMATCH_REPORT_URL"
"""The environment variable with the address of the folder `reports`."""


def publish(stages: Sequence[Stage]) -> None:
    """Make the artifacts of a run of `stages`."""
    if runs := _evaluated(stages):
        create_markdown_artifact(
            leaderboard.to_markdown(runs), key="metrics", description="Metrics of this run's models"
        )
        create_markdown_artifact(
            _difference(), key="metrics-diff", description="Metrics against the last commit"
        )
    _link_report()


def _link_report() -> None:
    again = "`prefect deployment run report` makes the report from the present results"
    if (LAYOUT.reports / "index.html").is_file():
        text = "Report of all results"
        create_link_artifact(_report_url(), link_text=text, key="report", description=again)
    else:
        create_markdown_artifact(f"There is no report yet. {again}.", key="report")


def _evaluated(stages: Sequence[Stage]) -> list[Run]:
    """The results of these stages, as the leaderboard reads them."""
    written = {out for stage in stages for out in stage.outs}
    if not any(out.is_relative_to(METRICS) for out in written):
        return []
    runs = read_runs(LAYOUT.reports)
    return [run for run in runs if LAYOUT.result(run.dataset, run.preset).metrics in written]


def _difference() -> str:
    output: list[str] = []
    if code := process.run(["dvc", "metrics", "diff", "--md"], output.append):
        return f"The metrics could not be compared: {output[-1] if output else f'exit code {code}'}"
    table = [line for line in output if line.startswith("|")]
    return "\n".join(table) or "No metric differs from the last commit."


def _report_url() -> str:
    served = os.environ.get(REPORT_URL)
    page = LAYOUT.reports / "index.html"
    return f"{served}/{page.name}" if served else page.resolve().as_uri()
