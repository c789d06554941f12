"""The plug-in that finds a deployment by its own name and shows the progress of a run."""

import asyncio
import io
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.client import orchestration
from prefect.client.schemas.filters import FlowRunFilterParentFlowRunId, LogFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, Log
from prefect.states import Completed, Failed, Pending, Running, Scheduled
from rich.console import Console

from manymatch.cli import deployment_names
from manymatch.cli.deployment_names import naming, resolving

SCHEMA = {"properties": {"dataset": {"default": "scenes"}, "preset": {}, "overrides": {}}}


class Client:
    """Enough of Prefect's client: two flows, three deployments."""

    api_url = "http://127.0.0.1:1/api"

    async def read_deployment_by_name(self, name):
        return name

    async def read_flow(self, flow_id):
        return SimpleNamespace(name={1: "train", 2: "other"}[flow_id])

    async def read_deployment(self, deployment_id):
        parameters = {"preset": "cora"}
        return SimpleNamespace(
            name="train-cora", parameters=parameters, parameter_openapi_schema=SCHEMA
        )

    async def count_flow_runs(self, *, flow_run_filter):
        assert flow_run_filter.name and flow_run_filter.name.like_
        return len(flow_run_filter.name.like_.split())

    async def create_flow_run_from_deployment(self, deployment_id, **options):
        return str(options["name"])

    async def read_deployments(self, *, deployment_filter=None):
        flows = [("train-cora", 1), ("twice", 1), ("twice", 2)]
        known = [SimpleNamespace(name=name, flow_id=flow) for name, flow in flows]
        if deployment_filter is None:
            return known
        return [item for item in known if item.name in (deployment_filter.name.any_ or [])]


def changed(**attributes):
    """A client with the plug-in's functions."""
    kind = type("Changed", (Client,), attributes)
    kind.read_deployment_by_name = resolving(kind.read_deployment_by_name)
    kind.create_flow_run_from_deployment = naming(kind.create_flow_run_from_deployment)
    return kind()


def read(name, **attributes):
    return asyncio.run(changed(**attributes).read_deployment_by_name(name))


REQUEST = httpx.Request("POST", "http://127.0.0.1:1/api/deployments/filter")
REFUSED = httpx.Response(401, request=REQUEST)
OTHER = "127.0.0.1:1/api does not answer as Prefect's server does (odd): see PREFECT_API_URL"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("twice", None, "'twice' is ambiguous, give one of: other/twice, train/twice"),
        ("train-corra", None, "no deployment 'train-corra'; did you mean 'train-cora'?"),
        ("train-cora", httpx.ConnectError("refused"), "'make serve' starts one"),
        (
            "train-cora",
            httpx.HTTPStatusError("Unauthorized\nsee", request=REQUEST, response=REFUSED),
            "asks for a password",
        ),
        ("train-cora", httpx.ReadTimeout("odd\nvery"), OTHER),
        ("train-cora", ValueError("odd"), OTHER),
        ("train-cora", ExceptionGroup("connecting", [OverflowError("odd")]), OTHER),
    ],
)
def test_a_name_without_one_answer_ends_with_one_line(name, error, words):
    async def failing(self, **filters):
        raise error

    with pytest.raises(SystemExit) as end:
        read(name, **({"read_deployments": failing} if error else {}))
    message = str(end.value)
    assert message.startswith("error: ") and words in message and "\n" not in message


def test_a_bare_name_is_resolved_and_a_new_run_is_named_after_what_it_runs():
    assert read("train-cora") == "train/train-cora"
    assert read("any/thing") == "any/thing"
    for options, name in (
        ({}, "train-cora scenes/cora 3"),
        ({"parameters": {"dataset": "flickr8k"}}, "train-cora flickr8k/cora 3"),
        ({"parameters": {"dataset": "all", "preset": ""}}, "train-cora 2"),
        ({"name": "mine"}, "mine"),
    ):
        assert asyncio.run(changed().create_flow_run_from_deployment(1, **options)) == name


BEGAN = datetime.now(UTC)
RUN, PARTS = uuid4(), uuid4()


def line(message, name="task_runs.progress", level=20, after=0):
    moment = BEGAN + timedelta(seconds=after)
    name = f"prefect.{name}"
    return Log(name=name, level=level, message=message, timestamp=moment, flow_run_id=RUN)


class Watched:
    """Enough of Prefect's client: states one after another, and with each the log so far."""

    def __init__(self, *steps):
        self.steps, self.asked = steps, -1

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def read_flow_run(self, run):
        self.asked = min(self.asked + 1, len(self.steps) - 1)
        state = self.steps[self.asked][0]
        return FlowRun(id=run, flow_id=uuid4(), state=state, work_queue_name="gpu")

    async def read_flow_runs(self, *, flow_run_filter):
        assert flow_run_filter.parent_flow_run_id == FlowRunFilterParentFlowRunId(any_=[RUN])
        return [FlowRun(id=PARTS, flow_id=uuid4())]

    async def read_logs(self, log_filter, limit, offset):
        assert log_filter.flow_run_id == LogFilterFlowRunId(any_=[RUN, PARTS])
        return self.steps[self.asked][1][offset : offset + limit]


def watch(monkeypatch, *steps, width=80, terminal=True):
    """The lines that a person sees."""
    monkeypatch.setattr(deployment_names, "_SECONDS_BETWEEN_LOOKS", 0.001)
    monkeypatch.setattr(orchestration, "get_client", lambda: Watched(*steps))
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    asyncio.run(deployment_names.watch_flow_run(RUN, console, timeout=30))
    return [text.rstrip() for text in stream.getvalue().splitlines()]


def test_lines_on_progress_are_shown_once_and_those_of_prefect_and_dvc_are_not(monkeypatch):
    first = [line("1/2 code"), line("Updating lock file 'dvc.lock'", "task_runs")]
    later = line("epoch 1/8: loss 1.0, validation rsum 9.0", after=5)
    late = line("written before, received after", after=3)
    repeated = line("Task run failed with state", "task_runs", 40)
    worker = line("no process", "flow_runs.worker", 40, after=6)
    shown = watch(
        monkeypatch,
        (Running(), first),
        (Running(), [*first, later]),
        (Failed(message="train failed:\nout of memory"), [*first, late, later, repeated, worker]),
    )
    texts = [text[9:] if text[:1].isdigit() else text.strip() for text in shown]
    progress = ["1/2 code", later.message, late.message, "no process"]
    assert texts == [*progress, "train failed:", "out of memory"]


def test_a_long_line_fits_a_terminal_and_a_run_that_waits_says_for_what(monkeypatch):
    long = " ".join(["word"] * 60)
    step = Completed(message="1 stages ran"), [line(long), line("a\x1b[2Jb [red]c")]
    shown = watch(monkeypatch, step)
    assert max(map(len, shown)) <= 80 and {text[:9] for text in shown[1:-2]} == {" " * 9}
    assert shown[-2].endswith(r"a\x1b[2Jb [red]c")  # which cannot operate the terminal
    assert long in watch(monkeypatch, step, terminal=False)[0]
    monkeypatch.setattr(deployment_names, "_PATIENCE", 0.0)
    for state, words in ((Scheduled(), "'gpu' for another run"), (Pending(), "A worker starts")):
        shown = watch(monkeypatch, *((one, []) for one in (state, state, Completed())), width=200)
        assert [words in text for text in shown if text] == [True]
