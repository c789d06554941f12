"""A run sees that the worker that started it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from pipelines.engine import STARTER
from pipelines.orphan import ended_with_worker


def test_a_run_without_its_starter_is_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the starter was gone before the flow began: importing takes its time."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setenv(STARTER, str(gone.pid))
    lines: list[str] = []

    def terminated(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        with pytest.raises(KeyboardInterrupt), ended_with_worker(lines.append):
            time.sleep(10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert lines[0].startswith("the worker has ended") and "'make serve'" in lines[0]


def test_a_run_with_its_starter_or_without_any_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for starter in (str(os.getppid()), None):
        if starter:
            monkeypatch.setenv(STARTER, starter)
        else:
            monkeypatch.delenv(STARTER)
        with ended_with_worker(pytest.fail):
            time.sleep(0.01)
