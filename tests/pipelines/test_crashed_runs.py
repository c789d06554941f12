"""Runs that ended together with their worker are told from those that go on."""

import asyncio
import os
import subprocess
import sys
from types import SimpleNamespace
from uuid import uuid4

from pipelines import crashed_runs


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
