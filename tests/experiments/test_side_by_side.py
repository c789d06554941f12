"""Runs in processes of their own: the same numbers, and none outlives the command."""

import contextlib
import json
import os
import shutil
import signal
import time

import psutil
import pytest
from typer.testing import CliRunner
from workspace import Workspace

from manymatch.cli import commands

COMMAND = ("experiment", "tiny", "vsepp", "--jobs", "2", "--over")


@pytest.mark.slow
def test_killed_and_interrupted_the_command_keeps_what_its_processes_finished(
    checkout, worked, monkeypatch
):
    """Real trainings: one run ends before the kill, the other is long."""
    workspace = Workspace(checkout.layout.root)
    with _started(workspace) as process:
        _wait(lambda: checkout.runs and _say(checkout, "epoch 3/4000"))
        family = workspace.processes()
        (command,) = workspace.processes("manymatch", "experiment")
        assert len(family) > 2
        command.kill()
        process.wait()
        assert psutil.wait_procs(family, timeout=300)[1] == []

    with _started(workspace) as process:
        _wait(lambda: _say(checkout, "resuming after epoch"))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "2 runs, 1 of them finished before" in output
    assert output.splitlines()[-1].startswith("interrupted;") and "Traceback" not in output

    monkeypatch.chdir(checkout.layout.root)
    finished = _run_here(checkout)
    assert worked == ["epochs=3, seed 0"]
    shutil.rmtree(checkout.layout.experiment_runs("presets"))
    assert _run_here(checkout) == finished
    assert len(worked) == 3


def _run_here(checkout):
    """The metrics of two short runs; the first is that of the processes."""
    words = [*COMMAND, "training.epochs=2,3"]
    outcome = CliRunner().invoke(commands.app, words, catch_exceptions=False)
    assert all(f"\n{start} " in outcome.stdout for start in ("training.epochs", "2", "3"))
    (written,) = checkout.layout.reports.glob("*/tiny/*.json")
    return [point["runs"][0]["metrics"] for point in json.loads(written.read_text())["points"]]


@contextlib.contextmanager
def _started(workspace):
    with workspace.start("manymatch", *COMMAND, "training.epochs=2,4000") as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _say(checkout, text):
    """Whether a run has said `text`."""
    logs = checkout.layout.experiment_runs("presets").glob("*/log.txt")
    return any(text in log.read_text() for log in logs)


def _wait(until):
    for _ in range(3000):
        if until():
            return
        time.sleep(0.1)
    raise AssertionError("it took more than five minutes")
