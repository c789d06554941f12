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

READ, CREATE = deployment_names._READ, deployment_names._CREATE
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
    assert deployment_names.wrap(kind, READ, deployment_names._resolving)
    return asyncio.run(kind().read_deployment_by_name(name))


def test_a_bare_name_is_resolved_and_a_full_one_left_alone() -> None:
    assert read("train-cora") == "train/train-cora"
    assert read("any/thing") == "any/thing"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("twice", "error: 'twice' is ambiguous, give one of: other/twice, train/twice"),
        ("train-corra", "error: no deployment 'train-corra'; did you mean 'train-cora'?"),
    ],
)
def test_a_name_without_one_answer_ends_with_one_line(name: str, message: str) -> None:
    with pytest.raises(SystemExit) as end:
        read(name)
    assert str(end.value).startswith(message) and "\n" not in str(end.value)


def test_without_a_server_it_says_how_to_start_one() -> None:
    async def unreachable(self: Client, **filters: Any) -> None:
        raise httpx.ConnectError("refused")

    with pytest.raises(SystemExit, match="'make serve' starts one"):
        read("train-cora", read_deployments=unreachable)


def test_a_server_with_another_password_is_one_line() -> None:
    async def refused(self: Client, **filters: Any) -> None:
        request = httpx.Request("POST", "http://127.0.0.1:1/api/deployments/filter")
        answer = httpx.Response(401, request=request)
        raise httpx.HTTPStatusError("Unauthorized\nsee", request=request, response=answer)

    with pytest.raises(SystemExit, match="asks for a password") as end:
        read("train-cora", read_deployments=refused)
    assert "\n" not in str(end.value)


@pytest.mark.parametrize(
    "error",
    [
        httpx.ReadTimeout("odd\nvery"),
        ValueError("odd"),
        ExceptionGroup("connecting", [OverflowError("odd")]),
    ],
)
def test_another_program_in_the_servers_place_is_one_line(error: Exception) -> None:
    async def other(self: Client, **filters: Any) -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        read("train-cora", read_deployments=other)
    message = str(end.value)
    assert message.startswith(
        "error: http://127.0.0.1:1/api does not answer as Prefect's server does"
    )
    assert "(odd)" in message
    assert "PREFECT_API_URL" in message and "\n" not in message


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
    assert deployment_names.wrap(kind, CREATE, deployment_names._naming)
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
    assert not deployment_names.wrap(other, READ, deployment_names._resolving)
    assert other().read_deployment_by_name("a") == "a"
    assert not deployment_names.wrap(type("Empty", (), {}), READ, deployment_names._resolving)
