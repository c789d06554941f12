"""What a person sees who watches a run."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from prefect.client import orchestration
from prefect.client.schemas.objects import FlowRun, Log, State
from prefect.states import Completed, Failed, Running, Scheduled
from rich.console import Console

from manymatch.cli import run_watch

BEGAN = datetime.now(UTC)
RUN = uuid4()
OURS = "prefect.task_runs.progress"


def line(message, name=OURS, level=20, after=0):
    moment = BEGAN + timedelta(seconds=after)
    return Log(name=name, level=level, message=message, timestamp=moment, flow_run_id=RUN)


@dataclass
class Client:
    """Enough of Prefect's client: states one after another, and with each the log so far."""

    states: list[State[Any]]
    logs: list[list[Log]]
    asked: int = field(default=-1)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def read_flow_run(self, run):
        self.asked = min(self.asked + 1, len(self.states) - 1)
        state = self.states[self.asked]
        return FlowRun(id=run, flow_id=uuid4(), state=state, work_queue_name="gpu")

    async def read_logs(self, log_filter, limit, offset):
        return self.logs[self.asked][offset : offset + limit]


def watch(monkeypatch, client, width=80, terminal=True):
    monkeypatch.setattr(run_watch, "_SECONDS_BETWEEN_LOOKS", 0.001)
    monkeypatch.setattr(orchestration, "get_client", lambda: client)
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    asyncio.run(run_watch.watch_flow_run(RUN, console, timeout=30))
    return [text.rstrip() for text in stream.getvalue().splitlines()]


def test_lines_on_progress_are_shown_once_and_those_of_prefect_and_dvc_are_not(monkeypatch):
    first = [line("1/2 code"), line("Updating lock file 'dvc.lock'", "prefect.task_runs")]
    later = line("epoch 1/8: loss 1.0, validation rsum 9.0", after=5)
    late = line("written before, received after", after=3)
    repeated = line("Task run failed with state", "prefect.task_runs", 40)
    worker = line("no process", "prefect.flow_runs.worker", 40, after=6)
    states = [Running(), Running(), Failed(message="train failed:\nout of memory")]
    logs = [first, [*first, later], [*first, late, later, repeated, worker]]
    shown = watch(monkeypatch, Client(states, logs))
    texts = [text[9:] if text[:1].isdigit() else text.strip() for text in shown]
    assert texts == [
        "1/2 code",
        "epoch 1/8: loss 1.0, validation rsum 9.0",
        "written before, received after",
        "no process",
        "train failed:",
        "out of memory",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_a_long_line_is_indented_on_a_terminal_and_whole_in_a_file(monkeypatch, width):
    long = " ".join(["word"] * 60)
    client = Client([Completed(message="1 stages ran")], [[line(long)]])
    shown = watch(monkeypatch, client, width)
    assert max(map(len, shown)) <= width and len(shown) > 2
    assert {text[:9] for text in shown[1:-1]} == {" " * 9}
    assert long in watch(monkeypatch, client, width, terminal=False)[0]


def test_a_line_cannot_operate_the_terminal(monkeypatch):
    client = Client([Completed()], [[line("a\x1b[2Jb [red]c")]])
    assert watch(monkeypatch, client)[0].endswith(r"a\x1b[2Jb [red]c")


def test_a_run_that_does_not_begin_says_what_it_waits_for(monkeypatch):
    monkeypatch.setattr(run_watch, "_PATIENCE", 0.0)
    states = [Scheduled(), Scheduled(), Completed()]
    shown = watch(monkeypatch, Client(states, [[], [], []]), width=200)
    assert sum("'gpu'" in text for text in shown) == 1
