"""The plug-in that finds a deployment by its own name."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any

import httpx
import pytest
from prefect.cli import deployment
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter

from manymatch.cli import deployment_names, run_watch

READ, CREATE = deployment_names.READ, deployment_names.CREATE
SCHEMA = {"properties": {"dataset": {"default": "scenes"}, "preset": {}, "overrides": {}}}


@dataclass
class Named:
    id: int
    name: str
    flow_id: int = 0
    parameters: dict[str, str] = field(default_factory=lambda: {"preset": "cora"})
    parameter_openapi_schema: dict[str, Any] = field(default_factory=lambda: SCHEMA)


class Client:
    """Enough of Prefect's client: two flows, three deployments."""

    api_url = "http://127.0.0.1:1/api"

    async def read_deployment_by_name(self, name: str) -> str:
        return name

    async def read_flow(self, flow_id: int) -> Named:
        return {1: Named(1, "train"), 2: Named(2, "other")}[flow_id]

    async def read_deployment(self, deployment_id: int) -> Named:
        return Named(deployment_id, "train-cora")

    async def count_flow_runs(self, *, flow_run_filter: FlowRunFilter) -> int:
        assert flow_run_filter.name and flow_run_filter.name.like_
        return len(flow_run_filter.name.like_.split())

    async def create_flow_run_from_deployment(self, deployment_id: int, **options: Any) -> str:
        return str(options["name"])

    async def read_deployments(
        self, *, deployment_filter: DeploymentFilter | None = None
    ) -> list[Named]:
        known = [Named(1, "train-cora", 1), Named(2, "twice", 1), Named(3, "twice", 2)]
        if deployment_filter is None:
            return known
        assert deployment_filter.name is not None
        wanted = deployment_filter.name.any_ or []
        return [item for item in known if item.name in wanted]


def read(name: str, **changed: Any) -> str:
    kind = type("Changed", (Client,), changed)
    assert deployment_names.wrap(kind, READ, deployment_names.resolving)
    return asyncio.run(kind().read_deployment_by_name(name))


def test_a_bare_name_is_resolved_and_a_full_one_left_alone() -> None:
    assert read("train-cora") == "train/train-cora"
    assert read("any/thing") == "any/thing"


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
def test_a_name_without_one_answer_ends_with_one_line(
    name: str, error: Exception | None, words: str
) -> None:
    async def failing(self: Client, **filters: Any) -> None:
        assert error
        raise error

    with pytest.raises(SystemExit) as end:
        read(name, **({"read_deployments": failing} if error else {}))
    message = str(end.value)
    assert message.startswith("error: ") and words in message and "\n" not in message


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "train-cora scenes/cora 3"),
        ({"parameters": {"dataset": "flickr8k"}}, "train-cora flickr8k/cora 3"),
        ({"parameters": {"dataset": "all", "preset": ""}}, "train-cora 2"),
        ({"name": "mine"}, "mine"),
    ],
)
def test_a_new_run_is_named_after_what_it_runs(options: dict[str, Any], name: str) -> None:
    kind = type("Changed", (Client,), {})
    assert deployment_names.wrap(kind, CREATE, deployment_names.naming)
    assert asyncio.run(kind().create_flow_run_from_deployment(1, **options)) == name


def test_prefect_still_has_what_the_plug_in_needs() -> None:
    """If this fails, `prefect deployment run` is Prefect's own again: adapt deployment_names.py."""
    kind = type("Copy", (PrefectClient,), {})
    for name in (READ, CREATE):
        assert deployment_names.wrap(kind, name, lambda inner: inner)
    for name in ("read_deployments", "read_flow", "api_url", "count_flow_runs", "read_logs"):
        assert hasattr(PrefectClient, name)
    theirs, ours = (
        list(inspect.signature(module.watch_flow_run).parameters)
        for module in (deployment, run_watch)
    )
    assert theirs == ours
    (entry,) = entry_points(group="prefect.plugins", name="manymatch")
    assert entry.load() is deployment_names


def test_a_prefect_that_has_changed_is_left_as_it_is() -> None:
    other = type("Other", (), {READ: lambda self, name: name})
    assert not deployment_names.wrap(other, READ, deployment_names.resolving)
    assert other().read_deployment_by_name("a") == "a"
    assert not deployment_names.wrap(type("Empty", (), {}), READ, deployment_names.resolving)
