"""What `make serve` asks of its settings and of the server; no service is started."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.exceptions import ObjectAlreadyExists
from prefect.workers.process import ProcessWorker

from manymatch.util.errors import ConfigError
from pipelines import serve
from pipelines.started import Started

ROOT = Path(__file__).parents[2]


@dataclass
class Pool:
    type: str
    template: dict[str, Any] = field(default_factory=dict)


@dataclass
class Client:
    """Enough of Prefect's client: a pool, and the limits of its queues."""

    pool: Pool | None = None
    limits: dict[str, int] = field(default_factory=dict)

    async def create_work_pool(self, pool: WorkPoolCreate) -> None:
        if self.pool:
            raise ObjectAlreadyExists(Exception("pool"))
        self.pool = Pool(pool.type, pool.base_job_template)

    async def update_work_pool(self, name: str, pool: WorkPoolUpdate) -> None:
        assert self.pool and pool.base_job_template
        self.pool.template = pool.base_job_template

    async def read_work_pool(self, name: str) -> Pool:
        assert self.pool
        return self.pool

    async def create_work_queue(
        self, name: str, *, work_pool_name: str, concurrency_limit: int
    ) -> None:
        if name in self.limits:
            raise ObjectAlreadyExists(Exception("queue"))
        self.limits[name] = concurrency_limit


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_a_pool_has_our_template_and_the_limits_that_somebody_has_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve.gpus, "present", lambda: ["0", "1"])
    client: Any = Client(Pool("process", ProcessWorker.get_default_base_job_template()))
    asyncio.run(serve.make_pool(client))
    assert client.limits["gpu"] == 2 and client.limits["cpu"] >= 1
    assert client.pool.template["variables"]["properties"] == {}
    assert client.pool.template["job_configuration"]["command"] == "python -m pipelines.engine"
    client.limits["gpu"] = 7
    asyncio.run(serve.make_pool(client))
    assert client.limits["gpu"] == 7
    client.pool = Pool("docker")
    with pytest.raises(ConfigError, match=r"^the work pool 'manymatch' is of type 'docker', .*"):
        asyncio.run(serve.make_pool(client))


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        here = serve.Place(port, Started(tmp_path))
        with pytest.raises(ConfigError, match=rf"^port {port} of 127.0.0.1 is used .*prefect.toml"):
            serve._start_servers(here, "manymatch:secret")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "api",
    ["https://example.org/api"]
    + [f"http://127.0.0.1{end}" for end in (":0/api", ":65535/api", ":x/api", "/api", ":4200")],
)
def test_an_address_that_cannot_be_served_is_one_line(
    api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["serve"])
    monkeypatch.setattr(serve, "get_current_settings", lambda: Settings(api))
    with pytest.raises(SystemExit, match="1"):
        serve.main()
    message = capsys.readouterr().err
    assert message.startswith("error: api.url") and message.count("\n") == 1 and api in message


def test_a_good_address_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    api = "http://127.0.0.1:4200/api"
    monkeypatch.setattr(serve, "get_current_settings", lambda: Settings(api))
    here = serve.place()
    assert (here.port, here.api, here.page) == (4200, api, "http://127.0.0.1:4200")
    assert here.reports == "http://127.0.0.1:4201"


class Settings:
    """Enough of Prefect's settings."""

    home = Path(".prefect")

    def __init__(self, url: str) -> None:
        self.api = self
        self.url = url


@pytest.mark.parametrize(
    ("stranger", "owner"),
    [(200, 200), (401, 401), (422, 422)],
    ids=["no password", "another password", "no protection against forged requests"],
)
def test_a_server_without_the_password_is_one_line(
    stranger: int, owner: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(url: str, auth: tuple[str, str] | None) -> httpx.Response:
        return httpx.Response(owner if auth == ("manymatch", "secret") else stranger)

    monkeypatch.setattr(serve.httpx, "get", answer)
    with pytest.raises(ConfigError, match=r"does not ask for the password .* run 'make stop'"):
        serve._check_guards(serve.Place(4200, Started(tmp_path)), "manymatch:secret")


@pytest.mark.parametrize("words", [["--help"], ["stopp"], ["stop", "now"]])
def test_a_word_that_is_no_command_starts_nothing(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["serve", *words])
    for name in ("serve", "stop"):
        monkeypatch.setattr(serve, name, lambda: pytest.fail("started"))
    with pytest.raises(SystemExit) as end:
        serve.main()
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "'stop'" in message and message.count("\n") == 1


def test_prefect_makes_no_device_id() -> None:
    command = [sys.executable, "-c", "import pipelines, os; print(os.environ['DO_NOT_TRACK'])"]
    assert subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout == "1\n"
