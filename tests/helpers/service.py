"""A checkout with its Prefect service, and what its pages would show."""

import contextlib
import re
import shutil
import socket
import sqlite3
import time
import tomllib
from dataclasses import dataclass, field

import httpx
from workspace import Workspace, make_workspace

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
PATIENCE = 900.0
"""Seconds that anything may take: a run of seconds takes minutes on a busy machine."""


def free_ports():
    """The first of two neighbouring ports that nobody uses: for the server and the reports."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


@dataclass
class Service(Workspace):
    """Runs of the service at `port`, told by their ids."""

    port: int = 0
    _token: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self):
        return {**super().environment, "PREFECT_API_URL": f"{self.page}/api"}

    @property
    def page(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self):
        """User and password of the server."""
        file = self.folder / ".prefect" / "service" / "profiles.toml"
        profile = tomllib.loads(file.read_text())["profiles"]["manymatch"]
        user, secret = profile["PREFECT_API_AUTH_STRING"].split(":")
        return user, secret

    def serve(self):
        return self.run("python", "-m", "pipelines.serve")

    def stop(self):
        return self.run("python", "-m", "pipelines.serve", "stop")

    def deployed(self, name):
        """A deployment, by FLOW/DEPLOYMENT."""
        return self.call("GET", f"deployments/name/{name}")

    def begin(self, deployment, **options):
        """Start a run of a deployment."""
        route = f"deployments/{self.deployed(deployment)['id']}/create_flow_run"
        return self.call("POST", route, state={"type": "SCHEDULED"}, **options)["id"]

    def cancel(self, run):
        self.call("POST", f"flow_runs/{run}/set_state", state={"type": "CANCELLING"})

    def state(self, run):
        return self.call("GET", f"flow_runs/{run}")["state"]

    def name(self, run):
        return self.call("GET", f"flow_runs/{run}")["name"]

    def stored_state(self, run):
        """The kind of the run's state as it is on the disk: there need not be a server."""
        with contextlib.closing(sqlite3.connect(self.folder / ".prefect" / "prefect.db")) as base:
            asked = "SELECT state_type FROM flow_run WHERE id = ?"
            ((kind,),) = base.execute(asked, [run])
        return kind

    def ended(self, run):
        """The state in which a run ends."""
        for _ in self._patiently(f"the end of run {run}"):
            if (state := self.state(run))["type"] in ENDED:
                return state
        raise AssertionError

    def log(self, run):
        """All lines of a run's log."""
        return "\n".join(self._lines(run, []))

    def says(self, run, text, after=0):
        """The run's log, as soon as it holds `text` behind its first `after` characters."""
        lines = []
        for _ in self._patiently(f"'{text}' in the log"):
            # Only the last of the known lines are read again: some arrive a little late.
            lines = self._lines(run, lines[:-20])
            if text in (log := "\n".join(lines))[after:]:
                return log
        raise AssertionError

    def _lines(self, run, known):
        """All lines of a run's log; the first are those that are `known`."""
        query = {"flow_run_id": {"any_": [run]}}
        while page := self.call("POST", "logs/filter", logs=query, offset=len(known)):
            known += [line["message"] for line in page]
        return known

    def stages(self, run):
        """The name of each task's state, in the order in which they began."""
        query = {"id": {"any_": [run]}}
        tasks = self.call("POST", "task_runs/filter", flow_runs=query)
        ordered = sorted(tasks, key=lambda task: task["start_time"])
        return {task["name"]: task["state"]["name"] for task in ordered}

    def artifacts(self, run):
        query = {"flow_run_id": {"any_": [run]}}
        match = self.call("POST", "artifacts/filter", artifacts=query)
        return {artifact["key"]: artifact["data"] for artifact in match}

    @contextlib.contextmanager
    def paused(self, *words):
        """The `processes`, which take no processor time during the block."""
        stopped = self.processes(*words)
        for process in stopped:
            process.suspend()
        try:
            yield stopped
        finally:
            for process in stopped:
                process.resume()

    def call(self, method, route, **content):
        headers = self.token() if method != "GET" else {}
        for _ in self._patiently(f"an answer to {route}"):
            answer = self.ask(method, route, content, self.password, headers)
            # A server whose data base is busy says so, and Prefect's own client asks again.
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                assert answer.is_success, answer.text
                return answer.json()
        raise AssertionError

    def ask(self, method, route, content=None, password=None, headers=None):
        """What the server answers."""
        return httpx.request(
            method,
            f"{self.page}/api/{route}",
            json=content or None,
            headers=headers,
            auth=password,
            timeout=60,
            verify=False,  # else every call would read the certificates of all authorities
        )

    def token(self):
        """The headers with which the server takes a request for one that nobody has forged."""
        if not self._token:  # the server takes it for an hour
            token = self.call("GET", "csrf-token?client=test")["token"]
            self._token = {"Prefect-Csrf-Client": "test", "Prefect-Csrf-Token": token}
        return self._token

    def _patiently(self, what):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            yield
            time.sleep(0.5)
        raise AssertionError(f"{what} did not come in {PATIENCE} s")


def make_service(root, folder):
    """A tiny checkout in `folder` with all that a service needs; the service is not started."""
    make_workspace(root, folder)
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("pipelines", "deploy"):
        shutil.copytree(root / name, folder / name, ignore=ignored)
    for name in ("prefect.yaml", "prefect.toml"):
        shutil.copy(root / name, folder)
    service = Service(folder, port=free_ports())
    service.commit("Service")
    return service


def run_id(output):
    """The id of the run in what `prefect deployment run` printed."""
    match = _UUID.search(output)
    assert match, output
    return match[0]
