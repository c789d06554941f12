"""The artifacts on the page of a run: the epochs of a training; at the end metrics, curves, changes
of metrics, a link to a report."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)

from manymatch.config.layout import Layout
from manymatch.reporting import page
from manymatch.reporting import report as stage
from manymatch.reporting.sections import leaderboard
from manymatch.results.metrics import Headline
from manymatch.results.runs import Curves, read_runs
from manymatch.util import files
from pipelines import process
from pipelines.graph import Stage, locked

LAYOUT = Layout()
METRICS = LAYOUT.reports / "metrics"
REPORT_URL = "MANYMATCH_REPORT_URL"
"""The environment variable with the address of the folder `reports`."""
_EPOCH = re.compile(r"epoch (\d+)/(\d+): ")
"""How the line of a finished epoch begins."""
_LEVELS = "▁▂▃▄▅▆▇█"
_AGAIN = "`prefect deployment run report` makes the report from the present results"


def show_epochs(stage: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    """`tell`, which also shows a bar of the epochs that a training of `stage` has finished."""
    bars: list[Any] = []

    def show(line: str) -> None:
        tell(line)
        if epoch := _EPOCH.match(line):
            share = 100 * int(epoch[1]) / int(epoch[2])
            with suppress(Exception):  # a run goes on without its server
                if bars:
                    update_progress_artifact(bars[0], share)
                else:
                    key = _key(f"epochs-{stage}")
                    bars.append(create_progress_artifact(share, key, f"Epochs of {stage}"))

    return show


def publish(
    stages: Sequence[Stage], workspace: Path, report: Path, tell: Callable[[str], None]
) -> None:
    """Make the artifacts of a run of `stages` in the current folder, and tell its metrics.

    A run that evaluates models gets a report that includes the run. The report stands in the folder
    `report` below the folder `reports` of the workspace. An artifact has a history for each key, so
    each model has a key: `metrics-scenes-cora`.
    """
    written = {out for stage in stages for out in stage.outs if out.is_relative_to(METRICS)}
    known = read_runs(LAYOUT.reports) if written else []
    runs = [run for run in known if LAYOUT.result(run.dataset, run.preset).metrics in written]
    for run in runs:
        headline = Headline.of(run.metrics).to_json()
        values = ", ".join(f"{name} {value:.1f}" for name, value in headline.items())
        tell(f"{run.dataset}/{run.preset} ({run.provenance.split}): {values}")
        text = leaderboard.to_markdown([run]) + _curves(run.curves)
        create_markdown_artifact(text, _key(f"metrics-{run.dataset}-{run.preset}"), "Metrics")
    if runs:
        create_markdown_artifact(_difference(), "metrics-diff", "Metrics against the last commit")
        pages = page.render(stage.read(LAYOUT.reports, LAYOUT.plans))
        with files.replacing(workspace / LAYOUT.reports / report) as partial:
            for address, text in pages.items():
                files.write_text(partial / address, text)
        _link_report(workspace, report / "index.html", "Report with the results of this run")
    elif (LAYOUT.reports / "index.html").is_file():
        _link_report(workspace, Path("index.html"), "Report of all results")
    else:
        create_markdown_artifact(f"There is no report yet. {_AGAIN}.", "report")


def _key(name: str) -> str:
    """The name as Prefect allows it as the key of an artifact."""
    return re.sub("[^a-z0-9]+", "-", name.lower())


def _curves(curves: Curves) -> str:
    """A row for each value that the training logged, with a sign for each epoch."""
    rows = []
    for curve in curves.values():
        values = [value for _, value in curve.points]
        low, high = min(values), max(values)
        drawn = "".join(_LEVELS[int(7 * (value - low) / (high - low or 1))] for value in values)
        rows.append(f"| {curve.name} | {drawn} | {values[0]:.4g} | {values[-1]:.4g} |")
    head = ["", "| Value of each epoch | Curve | First | Last |", "| --- | --- | ---: | ---: |"]
    return "\n".join([*head, *rows, ""]) if rows else ""


def _difference() -> str:
    with locked(Path()):
        code, output = process.run(["dvc", "metrics", "diff", "--md"], kept=None)
    if code:
        return f"The metrics could not be compared: {output[-1] if output else f'exit code {code}'}"
    head, *rows = [line for line in output if line.startswith("|")] or [""]
    return "\n".join([head, *rows]) if rows[1:] else "No metric differs from the last commit."


def _link_report(workspace: Path, address: Path, text: str) -> None:
    """Link the page at `address` below the folder `reports`."""
    served = os.environ.get(REPORT_URL)
    file = (workspace / LAYOUT.reports / address).resolve()
    url = f"{served}/{address.as_posix()}" if served else file.as_uri()
    create_link_artifact(url, text, "report", _AGAIN)
