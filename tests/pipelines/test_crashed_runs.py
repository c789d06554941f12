"""Runs that ended together with their worker are told from those that go on."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from uuid import uuid4

import pytest

from pipelines import crashed_runs
from pipelines.crashed_runs import ended_with_worker
from pipelines.engine import STARTER


class Client:
    """Enough of Prefect's client: runs that have not ended, and what they are set to."""

    def __init__(self, **workers):
        self.states = {}
        self.runs = [
            SimpleNamespace(
                name=name, id=uuid4(), labels={"prefect.worker.name": worker} if worker else {}
            )
            for name, worker in workers.items()
        ]

    async def read_flow_runs(self, *, flow_run_filter):
        assert flow_run_filter.state and flow_run_filter.state.type
        asked = {item.name for item in flow_run_filter.state.type.any_ or []}
        assert asked == {"PENDING", "RUNNING", "CANCELLING"}
        return self.runs

    async def set_flow_run_state(self, run, state, force):
        assert force  # a run may have been left while it was cancelled
        (name,) = (known.name for known in self.runs if known.id == run)
        self.states[name] = state


def test_only_a_run_of_this_worker_that_nobody_works_on_is_crashed():
    client = Client(dead="mine", alive="mine", elsewhere="other", waiting=None)
    command = [sys.executable, "-c", "input()", "-m", "prefect.engine"]
    environment = os.environ | {"PREFECT__FLOW_RUN_ID": str(client.runs[1].id)}
    engine = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)
    try:
        while str(client.runs[1].id) not in crashed_runs.running_ids():
            assert engine.poll() is None
        assert asyncio.run(crashed_runs.end_crashed_runs(client, "mine")) == ["dead"]
    finally:
        engine.communicate()
    assert client.states.keys() == {"dead"} and client.states["dead"].name == "Crashed"
    assert "start the same run again" in client.states["dead"].message
    assert asyncio.run(crashed_runs.end_crashed_runs(client, "mine")) == ["dead", "alive"]


def test_a_run_without_its_starter_is_terminated(monkeypatch):
    """Even where the starter was gone before the flow began: importing takes its time."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setenv(STARTER, str(gone.pid))
    lines = []

    def terminated(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        with pytest.raises(KeyboardInterrupt), ended_with_worker(lines.append):
            time.sleep(10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert lines[0].startswith("the worker has ended") and "'make serve'" in lines[0]
    monkeypatch.setenv(STARTER, str(os.getppid()))
    with ended_with_worker(pytest.fail):
        time.sleep(0.01)
    monkeypatch.delenv(STARTER)
    with ended_with_worker(pytest.fail):
        pass
