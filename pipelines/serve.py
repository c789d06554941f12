"""`make serve` and `make stop`: the service of this checkout on this machine.

A Prefect server on SQLite, a page with the reports, a work pool with its queues, the deployments of
`prefect.yaml`, and a worker; all on 127.0.0.1. The processes are written down under Prefect's home
(`.prefect`), so that `stop` ends exactly these.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psutil
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import get_current_settings
from prefect.workers.process import ProcessWorker

from manymatch.errors import ConfigError, ManyMatchError
from manymatch.progress import say
from pipelines import gpus, process
from pipelines.artifacts import LAYOUT, REPORT_URL
from pipelines.started import Started

POOL = "manymatch"
PROCESSES = WORKER, REPORTS, SERVER = "worker", "reports", "server"
"""In the order in which they are ended: the worker tells the server how its runs end."""
_HOST = "127.0.0.1"
_PATIENCE = 180.0
"""Seconds that a server may take to answer; a busy machine is slow."""
# Not for what serves and works: there the plug-in has nothing to do, and would only log errors.
_ENVIRONMENT = process.OWN | {"PREFECT_PLUGINS_ENABLED": "false"}

COMMANDS = """\
The page of all runs: {page}
In this folder, with the environment active (. .venv/bin/activate):
  prefect deployment run train-cora --watch    train and evaluate a method
  prefect deployment ls                        what else can be run
  make stop                                    end the service; runs and results are kept\
"""


@dataclass(frozen=True)
class Place:
    """Where the service is: `api`, as Prefect's settings have it, and its notes and logs."""

    api: str
    started: Started

    @property
    def port(self) -> int:
        return urlsplit(self.api).port or 80

    @property
    def page(self) -> str:
        return self.api.removesuffix("/api")

    @property
    def reports(self) -> str:
        """The reports are served beside the server, one port on."""
        return f"http://{_HOST}:{self.port + 1}"


def place() -> Place:
    """As `prefect.toml` or the environment say; only servers on this machine are ours to start."""
    settings = get_current_settings()
    api = settings.api.url or ""
    if urlsplit(api).hostname != _HOST:
        raise ConfigError(
            f"api.url (prefect.toml, or PREFECT_API_URL): expected http://{_HOST}:PORT/api, "
            f"found '{api}'"
        )
    return Place(api, Started(settings.home.resolve() / "service"))


def serve() -> None:
    """Start what does not run yet, deploy everything, and say what to type."""
    here = place()
    began = time.monotonic()
    new = [name for name in PROCESSES if not here.started.find(name)]
    try:
        _start_servers(here)
        asyncio.run(_make_pool())
        _start(here, WORKER, ["prefect", "worker", "start", "--pool", POOL, "--type", "process"])
        _deploy()
    except BaseException:
        _end(here, new)
        raise
    say(f"started in {time.monotonic() - began:.0f} s")
    print(COMMANDS.format(page=here.page))


def _start_servers(here: Place) -> None:
    port = str(here.port)
    _start(here, SERVER, ["prefect", "server", "start", "--host", _HOST, "--port", port], here.port)
    folder = str(LAYOUT.reports)
    beside = str(here.port + 1)
    command = ["http.server", beside, "--bind", _HOST, "--directory", folder]
    _start(here, REPORTS, command, here.port + 1)
    _wait_for_server(here)


def _start(here: Place, name: str, command: list[str], port: int | None = None) -> None:
    if here.started.find(name):
        return
    if port and _taken(port):
        raise ConfigError(
            f"port {port} of {_HOST} is used by another program: end it, or choose another port "
            "in prefect.toml (api.url and server.api.port)"
        )
    here.started.start(name, command, _ENVIRONMENT | {REPORT_URL: here.reports})


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0


def _wait_for_server(here: Place) -> None:
    deadline = time.monotonic() + _PATIENCE
    while here.started.find(SERVER):
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{here.api}/health").is_success:
                return
        if time.monotonic() > deadline:
            raise ManyMatchError(f"the server has not answered in {_PATIENCE:.0f} s; try again")
        time.sleep(0.2)
    log = here.started.log(SERVER)
    raise ManyMatchError(f"the server ended: {here.started.last_line(SERVER)} (all in {log})")


async def _make_pool() -> None:
    """The pool, and a queue for runs on GPUs (at most one a GPU) beside that of the others."""
    async with get_client() as client:
        with contextlib.suppress(ObjectAlreadyExists):
            template = ProcessWorker.get_default_base_job_template()
            await client.create_work_pool(
                WorkPoolCreate(name=POOL, type=ProcessWorker.type, base_job_template=template)
            )
        await _make_queue(client, "gpu", limit=max(1, len(gpus.present())))
        await _make_queue(client, "cpu", limit=max(1, (psutil.cpu_count(logical=False) or 1) // 2))


async def _make_queue(client: PrefectClient, name: str, limit: int) -> None:
    with contextlib.suppress(ObjectAlreadyExists):
        await client.create_work_queue(name, work_pool_name=POOL)
    queue = await client.read_work_queue_by_name(name, work_pool_name=POOL)
    await client.update_work_queue(queue.id, concurrency_limit=limit)


def _deploy() -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ManyMatchError(f"prefect.yaml could not be deployed: {done.stdout}{done.stderr}")


def stop() -> None:
    """End what `serve` started."""
    here = place()
    ended = _end(here, PROCESSES)
    say(f"ended: {', '.join(ended) or 'nothing ran'}")


def _end(here: Place, names: Sequence[str]) -> list[str]:
    """End those of the service's processes; the names of those that ran."""
    return [name for name in names if here.started.end(name)]


def main() -> None:
    """`python -m pipelines.serve [stop]`."""
    try:
        stop() if sys.argv[1:] == ["stop"] else serve()
    except ManyMatchError as error:
        say(f"error: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
