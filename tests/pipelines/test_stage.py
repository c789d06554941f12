"""Stages as DVC runs them, in a repository with two of them; no Prefect server is needed."""

from __future__ import annotations

import logging
import subprocess
import threading
from pathlib import Path

import pytest

from pipelines import sharing
from pipelines import stage as module
from pipelines.stage import StageFailed, run_stage

PIPELINE = """
stages:
  first:
    cmd: cat setting > one
    deps: [setting]
    outs: [one]
  second:
    cmd: while test -e hold; do sleep 0.1; done; cp one two && grep -vq wrong one
    deps: [one]
    outs: [two]
  killed:
    cmd: echo begun; kill -9 $$
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(PIPELINE)
    Path("setting").write_text("quick\n")
    for command in (["git", "init", "-q"], ["dvc", "init", "-q"]):
        subprocess.run(command, check=True)
    return tmp_path


def run(name: str, said: list[str] | None = None) -> str | None:
    return run_stage(name, (said if said is not None else []).append, {})


@pytest.mark.slow
@pytest.mark.usefixtures("repository")
def test_a_stage_runs_only_if_something_changed() -> None:
    lines: list[str] = []
    assert run("first", lines) is None and "> cat setting > one" in lines
    assert run("first") == "no dependency of this stage has changed"
    Path("setting").write_text("other\n")
    assert run("first") is None
    Path("setting").write_text("quick\n")
    assert "are taken from DVC's cache" in (run("first") or "")
    assert Path("one").read_text() == "quick\n"


def test_the_head_of_a_table_is_progress_and_no_line_of_dvc(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "progress", lambda: logging.getLogger("progress"))
    monkeypatch.setattr(module, "get_run_logger", lambda: logging.getLogger("prefect_run"))
    with caplog.at_level(logging.INFO):
        for line in ("           R@1  R@5", "> manymatch train", "\tgit add dvc.lock"):
            module._tell(line)
    assert [record.name for record in caplog.records] == ["progress", "prefect_run", "prefect_run"]


@pytest.mark.slow
@pytest.mark.usefixtures("repository")
def test_a_failed_stage_repeats_its_last_lines_and_says_what_next() -> None:
    Path("setting").write_text("wrong\n")
    run("first")
    with pytest.raises(StageFailed, match=r"(?s)^second failed .*exited with 1\n.*start the run"):
        run("second")
    # DVC sees the signal itself, or the code of a shell between it and the stage.
    with pytest.raises(StageFailed, match=r"(?s)^killed failed .*begun\n.*exited with (-9|137)\n"):
        run("killed")


@pytest.mark.slow
@pytest.mark.usefixtures("repository")
def test_while_a_stage_runs_others_pass_what_it_reads_and_wait_for_what_it_writes() -> None:
    run("first")
    hold = Path("hold")
    hold.touch()
    begun = threading.Event()

    def listen(line: str) -> None:
        if line.startswith("> while"):
            begun.set()

    def let_go(line: str) -> None:
        if "second waits for the end" in line:
            hold.unlink()

    runner = threading.Thread(target=run_stage, args=("second", listen, {}))
    runner.start()
    assert begun.wait(60)
    assert run("first") == "no dependency of this stage has changed"
    assert run_stage("second", let_go, {}) == "no dependency of this stage has changed"
    runner.join(60)
    assert not hold.exists() and Path("two").read_text() == "quick\n"


@pytest.mark.parametrize("shared", [True, False])
def test_only_shared_outputs_are_pushed_and_the_run_has_said_whether(
    monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    pushed: list[str] = []
    monkeypatch.setattr(module, "run_stage", lambda *_: None)
    monkeypatch.setattr(module, "get_run_logger", logging.getLogger)
    monkeypatch.setattr(sharing, "push_stage", pushed.append)
    monkeypatch.setattr(sharing, "shared", None)
    assert module.stage.fn("first", {}, shared).is_completed()
    assert pushed == (["first"] if shared else [])
