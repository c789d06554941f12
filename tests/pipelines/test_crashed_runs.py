"""Runs that ended together with their worker are told from those that go on."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import State

from pipelines import crashed_runs
from pipelines.crashed_runs import ended_with_worker
from pipelines.engine import STARTER


@dataclass
class Run:
    name: str
    labels: dict[str, str]
    id: UUID = field(default_factory=uuid4)


@dataclass
class Client:
    """Enough of Prefect's client: runs that have not ended, and what they are set to."""

    runs: list[Run]
    states: dict[UUID, State[Any]] = field(default_factory=dict)

    async def read_flow_runs(self, *, flow_run_filter: FlowRunFilter) -> list[Run]:
        assert flow_run_filter.state and flow_run_filter.state.type
        asked = {item.name for item in flow_run_filter.state.type.any_ or []}
        assert asked == {"PENDING", "RUNNING", "CANCELLING"}
        return self.runs

    async def set_flow_run_state(self, run: UUID, state: State[Any], force: bool) -> None:
        assert force  # a run may have been left while it was cancelled
        self.states[run] = state


def run(name: str, worker: str) -> Run:
    return Run(name, {"prefect.worker.name": worker})


def test_only_a_run_of_this_worker_that_nobody_works_on_is_crashed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dead, alive, elsewhere = run("dead", "mine"), run("alive", "mine"), run("there", "other")
    client = Client([dead, alive, elsewhere, Run("not yet taken", {})])
    monkeypatch.setattr(crashed_runs, "running_ids", lambda: {str(alive.id)})
    assert asyncio.run(crashed_runs.end_crashed_runs(client, "mine")) == ["dead"]  # type: ignore[arg-type]
    ((changed, state),) = client.states.items()
    assert changed == dead.id and state.name == "Crashed"
    assert state.message and "start the same run again" in state.message


def test_a_live_engine_tells_its_run() -> None:
    command = [sys.executable, "-c", "input()", "-m", "prefect.engine"]
    environment = os.environ | {"PREFECT__FLOW_RUN_ID": "abc"}
    engine = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)
    try:
        while "abc" not in crashed_runs.running_ids():
            assert engine.poll() is None
    finally:
        engine.communicate()
    assert "abc" not in crashed_runs.running_ids()


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
