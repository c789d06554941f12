"""`make serve` and `make stop`: the service of this checkout on this machine.

The service is a Prefect server on SQLite, a page with the reports, a work pool with its queues, the
deployments (`deployments.py`), and a worker; all on 127.0.0.1. A note of each process lies under
Prefect's home (`.prefect`), so that `stop` ends exactly these processes.

A page of another origin, and another user of this machine, must not start commands here. So the
server asks for a password (`password.py`), answers no other origin than its own page, wants a token
against forged requests, and the pool takes no command, environment or folder from a request.
"""

import asyncio
import contextlib
import json
import re
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import get_current_settings
from prefect.workers.process import ProcessWorker

from manymatch.util.errors import ConfigError, ManyMatchError
from manymatch.util.progress import say, working
from pipelines import experiment, gpus, password, process
from pipelines.alerts import VARIABLE, set_alerts
from pipelines.artifacts import LAYOUT, REPORT_URL
from pipelines.crashed_runs import end_crashed_runs
from pipelines.deployments import deploy
from pipelines.started import Started

POOL = "manymatch"
TEMPLATE = Path("deploy", "process.json")
"""How the pool makes a process of a run: all values are fixed."""
PROCESSES = WORKER, REPORTS, SERVER = "worker", "reports", "server"
"""In the order in which `stop` ends them: runs must still reach the server when they end."""
WORKER_NAME = "service"
"""The name of the worker that `serve` starts; the server stores it with the worker's runs."""
_HOST = "127.0.0.1"
_API = re.compile(rf"http://{re.escape(_HOST)}:(\d{{1,5}})/api")
_LAST_PORT = 65534
"""One less than the highest port, because the reports use the port after the server's."""
_PATIENCE = 180.0
"""Seconds that a server may need before it answers on a busy machine."""
_WORK = ["prefect", "worker", "start", "--pool", POOL, "--type", ProcessWorker.type]
# The plug-in serves commands that people type. In the server and the worker it only logs errors.
_ENVIRONMENT = process.OWN | {"PREFECT_PLUGINS_ENABLED": "false"}

COMMANDS = """\
The page of all runs: {page}
It asks for this password once: {password}
In this folder, with the environment active (. .venv/bin/activate):
  prefect deployment run train-cora --watch    train and evaluate a method
  prefect deployment ls                        what else can be run
  make stop                                    end the service; runs and results are kept\
"""


@dataclass(frozen=True)
class Place:
    """The server's port, and the notes and logs of the processes."""

    port: int
    started: Started

    @property
    def api(self) -> str:
        return f"{self.page}/api"

    @property
    def page(self) -> str:
        return f"http://{_HOST}:{self.port}"

    @property
    def password(self) -> Path:
        """The file with the password."""
        return self.started.folder / "profiles.toml"

    @property
    def reports(self) -> str:
        """The page of the reports, on the port after the server's."""
        return f"http://{_HOST}:{self.port + 1}"


def place() -> Place:
    """The service that `prefect.toml` or the environment describes.

    Raises:
        ConfigError: the server's address is not on this machine.
    """
    settings = get_current_settings()
    address = _API.fullmatch(settings.api.url or "")
    if not address or not 1 <= int(address[1]) <= _LAST_PORT:
        raise ConfigError(
            f"api.url: 'make serve' cannot start a server at '{settings.api.url or ''}'. Set "
            f"http://{_HOST}:PORT/api with a port up to {_LAST_PORT} in prefect.toml, or in "
            "PREFECT_API_URL."
        )
    return Place(int(address[1]), Started(settings.home.resolve() / "service"))


def serve() -> None:
    """Start the processes that do not run yet, deploy everything, and print what to type."""
    here = place()
    began = time.monotonic()
    new = [name for name in PROCESSES if not here.started.find(name)]
    experiment.remove_left()
    secret = password.settled(here.password)
    try:
        with working("start the service"):
            _start_servers(here, secret)
            asyncio.run(_prepare(new_worker=WORKER in new))
            _start(here, WORKER, [*_WORK, "--name", WORKER_NAME])
            deploy()
    except BaseException:
        for name in new:
            here.started.end(name)
        raise
    say(f"started in {time.monotonic() - began:.0f} s")
    print(COMMANDS.format(page=here.page, password=secret))


def _start_servers(here: Place, secret: str) -> None:
    """Start the server and the page of the reports, and wait until the server answers.

    Settings of the server keep others out, whatever the user's environment says. A server that an
    older `make serve` started, without a password or with another, is refused.
    """
    port = str(here.port)
    command = ["prefect", "server", "start", "--host", _HOST, "--port", port]
    guards = {
        password.SERVER: secret,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": here.page,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    _start(here, SERVER, command, here.port, guards)
    command = ["pipelines.report_page", str(here.port + 1), str(LAYOUT.reports)]
    _start(here, REPORTS, command, here.port + 1)
    _wait_for_server(here)
    check_guards(here, secret)


def check_guards(here: Place, secret: str) -> None:
    """A `ConfigError` if the server does not ask for the password `secret`."""
    asked = f"{here.api}/csrf-token?client=make-serve"
    user, _, own = secret.partition(":")
    stranger = httpx.get(asked, auth=None, timeout=_PATIENCE)
    owner = httpx.get(asked, auth=(user, own), timeout=_PATIENCE)
    if stranger.status_code != httpx.codes.UNAUTHORIZED or not owner.is_success:
        raise ConfigError(
            f"the server at {here.page} does not ask for the password in {here.password}. It was "
            "started before the password was made: run 'make stop', then 'make serve'."
        )


def _start(
    here: Place,
    name: str,
    command: list[str],
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    if here.started.find(name):
        return
    with socket.socket() as probe:
        taken = port is not None and probe.connect_ex((_HOST, port)) == 0
    if taken:
        raise ConfigError(
            f"port {port} of {_HOST} is used by another program. End that program, or set another "
            "port in prefect.toml (api.url and server.api.port)."
        )
    here.started.start(name, command, _ENVIRONMENT | {REPORT_URL: here.reports, **(settings or {})})


def _wait_for_server(here: Place) -> None:
    deadline = time.monotonic() + _PATIENCE
    while here.started.find(SERVER):
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{here.api}/health").is_success:
                return
        if time.monotonic() > deadline:
            raise ManyMatchError(
                f"the server has not answered in {_PATIENCE:.0f} s. Run 'make serve' again."
            )
        time.sleep(0.2)
    log = here.started.log(SERVER)
    last_line = log.read_text(errors="replace").rstrip().rpartition("\n")[2]
    raise ManyMatchError(f"the server ended: {last_line}. See {log}.")


async def _prepare(new_worker: bool) -> None:
    """Make the pool; before a new worker, set the runs of an earlier worker to Crashed."""
    async with get_client() as client:
        await make_pool(client)
        if await set_alerts(client):
            say(f"runs that do not end well are reported to the address in {VARIABLE}")
        if new_worker and (names := await end_crashed_runs(client, WORKER_NAME)):
            say(f"{', '.join(names)}: Crashed, because no process works on them any more")


async def make_pool(client: PrefectClient) -> None:
    """Make the pool, a queue for runs on GPUs (at most one for each GPU) and one for others.

    A pool of an older `make serve` gets the present template.
    """
    template = json.loads(TEMPLATE.read_text())
    with contextlib.suppress(ObjectAlreadyExists):
        await client.create_work_pool(
            WorkPoolCreate(name=POOL, type=ProcessWorker.type, base_job_template=template)
        )
    if (kind := (await client.read_work_pool(POOL)).type) != ProcessWorker.type:
        raise ConfigError(
            f"the work pool '{POOL}' is of type '{kind}', but 'make serve' needs "
            f"'{ProcessWorker.type}'. Start its workers as docs/scaling.md says, or remove the "
            f"pool with 'prefect work-pool delete {POOL}'."
        )
    await client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))
    limits = {
        gpus.QUEUE: len(gpus.present()),
        gpus.WITHOUT: (psutil.cpu_count(logical=False) or 1) // 2,
    }
    for name, limit in limits.items():
        # An existing queue keeps its limit, which a person may have set.
        with contextlib.suppress(ObjectAlreadyExists):
            await client.create_work_queue(
                name, work_pool_name=POOL, concurrency_limit=max(1, limit)
            )


def stop() -> None:
    """End the processes that `serve` started."""
    here = place()
    ended = [name for name in PROCESSES if here.started.end(name)]
    say(f"ended: {', '.join(ended) or 'nothing ran'}")


def main() -> None:
    """`python -m pipelines.serve [stop]`."""
    command = {(): serve, ("stop",): stop}.get(tuple(sys.argv[1:]))
    if not command:
        say("'python -m pipelines.serve' starts the service; with the word 'stop', it ends it")
        sys.exit(2)
    try:
        command()
    except ManyMatchError as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("interrupted; what this command had started was ended")
        sys.exit(130)


if __name__ == "__main__":
    main()
