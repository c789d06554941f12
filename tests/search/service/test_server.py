"""The command `manymatch serve`: it answers while it loads, serves many, and ends cleanly."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from manymatch.search.service.server import serve
from manymatch.util.errors import ConfigError

Started = tuple[subprocess.Popen[str], str]


def test_a_port_in_use_is_one_line(indexes: list[Path]) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, pytest.raises(ConfigError, match="in use"):
        serve(indexes, "127.0.0.1", taken.getsockname()[1], 100)
    with pytest.raises(ConfigError, match="--host"):
        serve(indexes, "192.0.2.1", 0, 100)
    with pytest.raises(ConfigError, match="--host"):
        serve(indexes, "a..b", 0, 100)


def test_the_service_answers_before_slow_imports() -> None:
    modules = "manymatch.search.service.app, manymatch.search.service.sharded_index"
    program = f"import sys, {modules}; sys.exit(bool({{'torch', 'numpy'}} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_service_ends_if_no_index_can_be_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(SystemExit, match="1"):
        serve([tmp_path], "127.0.0.1", 0, 100)
    for number, handler in handlers:
        signal.signal(number, handler)
    assert "manifest.json" in capsys.readouterr().err


@pytest.fixture
def started(indexes: list[Path]) -> Iterator[Started]:
    """The process of the command, and the address that it prints."""
    command = [sys.executable, "-m", "manymatch", "serve", *map(str, indexes), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    (address,) = re.findall(r"http://\S+", process.stderr.readline())
    yield process, address
    process.kill()
    process.wait()


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_end(started: Started, indexes: list[Path]) -> None:
    process, address = started
    with httpx.Client(base_url=address, timeout=60) as client:
        assert client.get("/health").json()["status"] == "loading"
        while client.get("/health").json()["status"] == "loading":
            pass
        assert "<title>" in client.get("/").text
        alone = client.get("/search?q=two+dogs").json()["results"]

        def ask(number: int) -> list[dict]:
            answer = client.get("/search", params={"q": "two dogs" if number % 2 else "a bird"})
            assert answer.status_code == 200
            return answer.json()["results"]

        with ThreadPoolExecutor(64) as pool:
            together = list(pool.map(ask, range(256)))
    for results in together[1::2]:
        assert [one["id"] for one in results] == [one["id"] for one in alone]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.count("is ready") == len(indexes) and "Traceback" not in said


@pytest.mark.slow
def test_an_interrupt_ends_the_command_while_it_loads(started: Started) -> None:
    process, address = started
    httpx.get(f"{address}/health", timeout=60)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said
