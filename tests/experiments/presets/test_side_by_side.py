"""Runs in processes of their own: the same numbers, and none outlives the command."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest
from tiny_checkout import Checkout

from manymatch.experiments import engine, workers
from manymatch.system.files import remove


@pytest.mark.slow
def test_two_at_a_time_give_the_same_numbers(
    checkout: Checkout, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = checkout.plan(over={"preset": ["vsepp", "cora"]})
    metrics = []
    for _ in range(2):
        written = engine.perform(checkout.experiment(plan, jobs=2))
        points = json.loads(written.read_text())["points"]
        metrics.append([run["metrics"] for point in points for run in point["runs"]])
        remove(checkout.layout.experiment_runs("presets"))
        monkeypatch.setattr(engine, "side_by_side", workers.side_by_side)
    assert worked == ["vsepp, seed 0", "cora, seed 0"]
    assert metrics[0] == metrics[1]


@pytest.mark.slow
def test_killed_and_run_again_it_goes_on(checkout: Checkout) -> None:
    process = _start(checkout, epochs=100)
    runs = checkout.layout.experiment_runs("presets")
    _wait(lambda: len([log for log in runs.glob("*/log.txt") if "epoch 3" in log.read_text()]) == 2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    _wait(lambda: not any(child.is_running() for child in children))

    # One of the two may end while the other starts.
    logs = [log for log in runs.glob("*/log.txt") if not log.with_name("result.json").exists()]

    process = _start(checkout, epochs=100)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert all(f"\n{start} " in output for start in ("size", "4", "6"))
    assert logs and all("resuming after epoch" in log.read_text() for log in logs)


@pytest.mark.slow
def test_interrupted_it_ends_in_one_line(checkout: Checkout) -> None:
    process = _start(checkout, epochs=4000)
    runs = checkout.layout.experiment_runs("presets")
    _wait(lambda: len([log for log in runs.glob("*/log.txt") if "epoch 1" in log.read_text()]) == 2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("interrupted;")
    assert "Traceback" not in errors


def _start(checkout: Checkout, epochs: int) -> subprocess.Popen[str]:
    words = f"experiment tiny vsepp --over size=4,6 --jobs 2 --set training.epochs={epochs}"
    return subprocess.Popen(
        [sys.executable, "-m", "manymatch", *words.split()],
        cwd=checkout.layout.root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # These tests may run in the background of a shell, which ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def _wait(until: Callable[[], bool]) -> None:
    for _ in range(600):
        if until():
            return
        time.sleep(0.1)
    raise AssertionError("it took more than a minute")
