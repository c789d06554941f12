"""Stages as DVC runs them, in a repository with two of them; no Prefect server is needed. What runs
log, and the artifact with the changes of the metrics."""

import logging
import subprocess
from pathlib import Path

import pytest
from prefect.exceptions import FailedRun

from manymatch.results.runs import Curve
from manymatch.util.errors import ConfigError
from pipelines import artifacts
from pipelines.stage import StageFailed, plain, run_stage, task_of

PIPELINE = """
stages:
  first:
    cmd: cat setting > one
    deps: [setting]
    outs: [one]
  second:
    cmd: cp one two && grep -vq wrong one
    deps: [one]
    outs: [two]
  killed:
    cmd: echo begun; kill -9 $$
"""
UNCHANGED = "no dependency of this stage has changed"


def run(name, said=None):
    return run_stage(name, (said if said is not None else []).append, {})


@pytest.mark.slow
@pytest.mark.usefixtures("warm_path")
def test_a_stage_runs_only_if_something_changed_and_a_failed_one_says_what_next(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(PIPELINE)
    Path("setting").write_text("quick\n")
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
        subprocess.run(command, check=True)
    lines = []
    assert run("first", lines) is None and "> cat setting > one" in lines
    assert run("first") == UNCHANGED
    Path("setting").write_text("wrong\n")
    assert run("first") is None
    with pytest.raises(StageFailed, match=r"(?s)^second failed .*exited with 1\n.*start the run"):
        run("second")
    # DVC sees the signal itself, or the code of a shell between it and the stage.
    with pytest.raises(StageFailed, match=r"(?s)^killed failed .*begun\n.*exited with (-9|137)\n"):
        run("killed")
    Path("setting").write_text("quick\n")
    assert "are taken from DVC's cache" in (run("first") or "")
    assert Path("one").read_text() == "quick\n"


def test_downloads_are_tried_again_and_other_stages_as_the_setting_says(monkeypatch):
    delays = task_of("download").retry_delay_seconds
    assert task_of("download").retries == len(delays) == 3 and delays == sorted(set(delays))
    assert task_of("train").retries == 0
    monkeypatch.setenv("MANYMATCH_RETRIES", "2")
    assert task_of("train").retries == 2
    monkeypatch.setenv("MANYMATCH_RETRIES", "often")
    with pytest.raises(ConfigError, match="MANYMATCH_RETRIES=often: expected a whole number"):
        task_of("train")


def test_the_epochs_of_a_training_are_a_bar_and_a_run_goes_on_without_it(monkeypatch):
    bars = []
    logged = []
    lines = ["epoch 1/4 (batches): 2/9", "epoch 1/4: loss 0.2", "epoch 2/4: loss 0.1"]
    monkeypatch.setattr(artifacts, "create_progress_artifact", lambda *bar: bars.append(bar) or 7)
    monkeypatch.setattr(artifacts, "update_progress_artifact", lambda *bar: bars.append(bar))
    show = artifacts.show_epochs("train@scenes-cora", logged.append)
    for line in lines:
        show(line)
    monkeypatch.delattr(artifacts, "update_progress_artifact")  # as if the server was gone
    show("epoch 3/4: loss 0.1")
    first = 25.0, "epochs-train-scenes-cora", "Epochs of train@scenes-cora"
    assert bars == [first, (7, 50.0)] and len(logged) == 4
    curve = Curve("validation/rsum", ((0.0, 10.0), (1.0, 40.0), (2.0, 30.0)))
    drawn = artifacts._curves({curve.name: curve})
    assert drawn.splitlines()[-1] == "| validation/rsum | ▁█▅ | 10 | 30 |"
    assert artifacts._curves({}) == ""


@pytest.mark.parametrize(
    ("error", "logged", "traceback"),
    [
        (ConfigError("no such method"), True, False),
        (None, True, False),
        (FailedRun("no such method"), False, True),
        (KeyError("method"), True, True),
    ],
)
def test_only_a_defect_has_a_traceback(error, logged, traceback):
    """Records as Prefect logs an error, or a state that tells of a fault."""
    info = (type(error), error, None) if error else (None, None, None)
    record = logging.LogRecord("prefect.flow_runs", logging.ERROR, "", 1, "failed", (), info)
    assert (plain(record), bool(record.exc_info)) == (logged, traceback)
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        assert plain in logging.getLogger(name).filters


TABLE = ["| Path | Metric |", "|---|---|", "| cora.json | rsum |"]


@pytest.mark.parametrize(
    ("code", "output", "shown"),
    [
        (0, [*TABLE, ""], "\n".join(TABLE)),
        (0, [], "No metric differs"),
        (255, ["ERROR: not a Git repository"], "The metrics could not be compared: ERROR: not a "),
        (255, [], "The metrics could not be compared: exit code 255"),
    ],
)
def test_a_failed_comparison_is_not_told_as_no_difference(monkeypatch, code, output, shown):
    monkeypatch.setattr(artifacts.process, "run", lambda *_, **__: (code, output))
    assert artifacts._difference().startswith(shown)
