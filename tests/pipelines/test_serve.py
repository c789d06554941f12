"""What `make serve` asks of its settings and of the server, its password, its page of the reports
and its processes; no Prefect server is started."""

import asyncio
import json
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from prefect.context import refresh_global_settings_context
from prefect.exceptions import ObjectAlreadyExists
from prefect.workers.process import ProcessWorker
from starlette.testclient import TestClient

from manymatch.util.errors import ConfigError, DataError
from pipelines import password, serve, started
from pipelines.report_page import pages
from pipelines.started import Started

ROOT = Path(__file__).parents[2]
FILE = Path(".prefect", "service", "profiles.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the settings of the service."""
    (tmp_path / "prefect.toml").write_text((ROOT / "prefect.toml").read_text())
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(password.CLIENT, raising=False)
    yield
    monkeypatch.undo()
    refresh_global_settings_context()


@dataclass
class Pool:
    type: str
    template: dict[str, Any] = field(default_factory=dict)


@dataclass
class Client:
    """Enough of Prefect's client: a pool, and the limits of its queues."""

    pool: Pool | None = None
    limits: dict[str, int] = field(default_factory=dict)

    async def create_work_pool(self, pool):
        if self.pool:
            raise ObjectAlreadyExists(Exception("pool"))
        self.pool = Pool(pool.type, pool.base_job_template)

    async def update_work_pool(self, name, pool):
        assert self.pool and pool.base_job_template
        self.pool.template = pool.base_job_template

    async def read_work_pool(self, name):
        assert self.pool
        return self.pool

    async def create_work_queue(self, name, *, work_pool_name, concurrency_limit):
        if name in self.limits:
            raise ObjectAlreadyExists(Exception("queue"))
        self.limits[name] = concurrency_limit


def test_a_pool_has_our_template_and_the_limits_that_somebody_has_set(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    client = Client(Pool("process", ProcessWorker.get_default_base_job_template()))
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


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        here = serve.Place(port, Started(tmp_path / "service"))
        with pytest.raises(ConfigError, match=rf"^port {port} of 127.0.0.1 is used .*prefect.toml"):
            serve._start_servers(here, "manymatch:secret")
    assert not (tmp_path / "service").exists()


def test_an_address_that_cannot_be_served_is_one_line(monkeypatch):
    def place(api):
        monkeypatch.setenv("PREFECT_API_URL", api)
        refresh_global_settings_context()
        return serve.place()

    here = place("http://127.0.0.1:4200/api")
    assert (here.port, here.api) == (4200, "http://127.0.0.1:4200/api")
    assert here.reports == "http://127.0.0.1:4201"
    for end in (":0/api", ":65535/api", "/api", ":4200"):
        with pytest.raises(ConfigError, match=rf"^api\.url: .*127\.0\.0\.1{end}'"):
            place(f"http://127.0.0.1{end}")
    with pytest.raises(ConfigError, match="example"):
        place("https://example.org/api")


@pytest.mark.parametrize(
    ("stranger", "owner"),
    [(200, 200), (401, 401), (422, 422)],
    ids=["no password", "another password", "no protection against forged requests"],
)
def test_a_server_without_the_password_is_one_line(stranger, owner, tmp_path, monkeypatch):
    def answer(url, auth, timeout):
        return httpx.Response(owner if auth == ("manymatch", "secret") else stranger)

    monkeypatch.setattr(serve.httpx, "get", answer)
    with pytest.raises(ConfigError, match=r"does not ask for the password .* run 'make stop'"):
        serve.check_guards(serve.Place(4200, Started(tmp_path)), "manymatch:secret")


def test_only_its_user_can_read_the_password_and_every_command_in_the_folder_has_it():
    first = password.settled(FILE)
    assert len(first) > 30 and first.startswith("manymatch:")
    assert stat.S_IMODE(FILE.stat().st_mode) == 0o600
    assert [path.name for path in FILE.parent.iterdir()] == [FILE.name]
    assert password.settled(FILE) == first
    ask = (
        "from prefect.settings import get_current_settings as s\n"
        "for one in (s().api, s().server.api): print(one.auth_string.get_secret_value())"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    assert done.stdout.split() == [first, first]


@pytest.mark.parametrize(
    "damage",
    [
        lambda: FILE.chmod(0o644),
        lambda: FILE.write_bytes(b"\xff"),
        lambda: FILE.write_text(FILE.read_text().replace("PREFECT_SERVER", "PREFECT_OTHER")),
        lambda: FILE.rename("elsewhere") and FILE.symlink_to("elsewhere"),
    ],
    ids=["readable by others", "no text", "without the server", "link"],
)
def test_a_password_that_is_damaged_or_readable_by_others_is_written_anew(damage):
    first = password.settled(FILE)
    damage()
    assert password.settled(FILE) != first
    assert stat.S_IMODE(FILE.lstat().st_mode) == 0o600


@pytest.mark.parametrize("name", [password.CLIENT, "PREFECT_PROFILES_PATH", "PREFECT_PROFILE"])
def test_an_environment_with_another_password_is_one_line(name, monkeypatch):
    monkeypatch.setenv(name, "other")
    with pytest.raises(ConfigError, match=rf"^{name}: [^\n]* Unset the variables\.$"):
        password.settled(FILE)


def test_the_reports_answer_a_name_of_this_machine_alone(tmp_path):
    (tmp_path / "index.html").write_text("results")
    client = TestClient(pages(str(tmp_path)))
    for name in ("127.0.0.1", "127.0.0.1:80", "localhost:4201"):
        answer = client.get("/index.html", headers={"Host": name})
        assert answer.text == "results"
        assert "access-control-allow-origin" not in answer.headers
    for name in ("evil.example", "evil.example:4201", "127.0.0.1.evil", "", "a:b"):
        for method, path in (("GET", "/index.html"), ("GET", "/"), ("HEAD", "/index.html")):
            answer = client.request(method, path, headers={"Host": name})
            assert answer.status_code == 400 and "results" not in answer.text
    for missing in ("/favicon.ico", "/none/index.html"):
        assert client.get(missing, headers={"Host": "localhost"}).status_code == 404
    later = TestClient(pages(str(tmp_path / "later")))
    assert later.get("/", headers={"Host": "localhost"}).status_code == 404


WAITS = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"


def start(program):
    """A note and the process of a program, which has started a child."""
    Path("waits.py").write_text(program)
    notes = Started(Path("service"))
    notes.start("one", ["waits"], {"PYTHONPATH": str(Path.cwd())})
    process = notes.find("one")
    assert process
    while not process.children():
        assert process.is_running()
    return notes, process


def test_a_process_ends_with_what_it_started_and_another_of_its_number_is_left_alone(monkeypatch):
    monkeypatch.setattr(started, "_SECONDS_TO_END", 0.1)
    notes, process = start(WAITS)
    note = Path("service", "one.json")
    mine = note.read_text()
    note.write_text(json.dumps(json.loads(mine) | {"begun": 1.0}))
    assert notes.find("one") is None and not notes.end("one") and process.is_running()
    for damaged in ("", "[]", "{}", '{"pid": "x", "begun": 1}', '{"pid": -1}', '{"pid": 1e99}'):
        note.write_text(damaged)
        with pytest.raises(DataError, match=r"one\.json: no note .* remove the file"):
            notes.end("one")
    note.write_text(mine)
    children = process.children()
    assert notes.end("one")
    _, alive = psutil.wait_procs([process, *children], timeout=5)
    assert not alive and notes.find("one") is None and not notes.end("one")


def test_ctrl_c_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(serve, "serve", interrupted)
    monkeypatch.setattr(sys, "argv", ["serve"])
    with pytest.raises(SystemExit, match="130"):
        serve.main()
    assert capsys.readouterr().err.startswith("interrupted")
