"""What `make serve` starts is found again, and nothing else is taken for it."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from manymatch.errors import ConfigError
from pipelines import serve
from pipelines.stage import task_of
from pipelines.started import Started

WAITS = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"


def start(folder: Path) -> tuple[Started, psutil.Process]:
    (folder / "waits.py").write_text(WAITS)
    started = Started(folder / "service")
    started.start("one", ["waits"], {"PYTHONPATH": str(folder)})
    process = started.find("one")
    assert process
    return started, process


def test_a_process_ends_with_what_it_started(tmp_path: Path) -> None:
    started, process = start(tmp_path)
    while not (children := process.children()):
        assert process.is_running()
    assert started.end("one")
    _, alive = psutil.wait_procs([process, *children], timeout=5)
    assert not alive
    assert started.find("one") is None and not started.end("one")


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    started, process = start(tmp_path)
    note = tmp_path / "service" / "one.json"
    mine = note.read_text()
    note.write_text(json.dumps(json.loads(mine) | {"begun": 1.0}))
    assert started.find("one") is None and not started.end("one")
    assert process.is_running()
    note.write_text(mine)
    assert started.end("one")


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        here = serve.Place(f"http://127.0.0.1:{port}/api", Started(tmp_path))
        with pytest.raises(ConfigError, match=rf"^port {port} of 127.0.0.1 is used .*prefect.toml"):
            serve._start_servers(here)
    assert list(tmp_path.iterdir()) == []


def test_only_a_server_of_this_machine_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*("python", "-m"), "pipelines.serve"]
    monkeypatch.setenv("PREFECT_API_URL", "https://example.org/api")
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 1
    assert done.stderr.startswith("error: api.url") and "http://127.0.0.1:PORT" in done.stderr


def test_downloads_are_tried_again_and_training_is_not() -> None:
    delays = task_of("download").retry_delay_seconds
    assert task_of("download").retries == len(delays) == 3 and delays == sorted(set(delays))
    assert task_of("train").retries == 0
