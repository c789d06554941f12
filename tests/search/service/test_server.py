"""The command `manymatch serve`: it answers while it loads, serves many, and ends cleanly. Requests
that wait together are answered together, and a faulty one fails alone."""

import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from waiting import ready

from manymatch.search.service import batcher
from manymatch.search.service.batcher import LARGEST, Batcher
from manymatch.search.service.server import serve
from manymatch.util.errors import ConfigError, DataError


def test_a_faulty_option_is_one_line(indexes):
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, pytest.raises(ConfigError, match="in use"):
        serve(indexes, "127.0.0.1", taken.getsockname()[1], 100)
    for host in ("192.0.2.1", "a..b"):
        with pytest.raises(ConfigError, match="--host"):
            serve(indexes, host, 0, 100)
    for rate in (float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="--rate"):
            serve([], "127.0.0.1", 0, rate)


def test_the_service_ends_if_no_index_can_be_loaded(tmp_path, capsys):
    handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(SystemExit, match="1"):
        serve([tmp_path], "127.0.0.1", 0, 100)
    for number, handler in handlers:
        signal.signal(number, handler)
    assert "manifest.json" in capsys.readouterr().err


@pytest.fixture
def started(indexes):
    """The process of the command, and the address that it prints."""
    command = [sys.executable, "-m", "manymatch", "serve", str(indexes[0]), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    (address,) = re.findall(r"http://\S+", process.stderr.readline())
    yield process, address
    process.kill()
    process.wait()


@pytest.mark.slow
def test_the_command_serves_until_it_is_told_to_end(started):
    process, address = started
    with httpx.Client(base_url=address, timeout=60) as client:
        assert client.get("/health").json()["status"] == "loading"
        ready(client)
        assert "<title>" in client.get("/").text
        with ThreadPoolExecutor(64) as pool:
            questions = ["/search?q=two+dogs", "/search?q=a+bird"] * 32
            answers = list(pool.map(client.get, questions))
    ids = [[one["id"] for one in answer.json()["results"]] for answer in answers]
    assert ids == ids[:2] * 32 and all(answer.status_code == 200 for answer in answers)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.count("is ready") == 1 and "Traceback" not in said


@pytest.mark.slow
def test_an_interrupt_ends_the_command_while_it_loads(started):
    process, address = started
    httpx.get(f"{address}/health", timeout=60)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said


def test_the_page_needs_nobody_else(client):
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "style=" not in page.text
    files = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', page.text))
    for path in list(files):
        files |= set(re.findall(r'from "(/page/[^"]+)"', client.get(path).text))
    for path in files:
        answer = client.get(path)
        assert answer.status_code == 200
        assert set(re.findall(r"https?://[^\"' )]+", answer.text)) <= {"http://www.w3.org/2000/svg"}
    assert len(files) > 3


class Held:
    """A batcher whose thread is busy with a first request; answers wait for `released`."""

    def __init__(self):
        self.released, self.batches = threading.Event(), list[tuple[str, list[int]]]()
        self.submit = Batcher(self.answer).submit
        first = self.submit("a", 0)
        while not first.running():
            pass

    def answer(self, kind, requests):
        self.released.wait(10)
        self.batches.append((kind, list(requests)))
        if -1 in requests:
            raise DataError("a faulty request")
        return [10 * request for request in requests]


def test_requests_of_one_kind_share_a_batch_and_a_faulty_one_fails_alone():
    held = Held()
    waiting = [held.submit("ab"[i % 2], i) for i in range(1, 2 * LARGEST)]
    good, faulty, other = held.submit("a", 1), held.submit("a", -1), held.submit("a", 2)
    assert held.submit("a", 7777).cancel()
    held.released.set()
    assert [future.result(10) for future in waiting] == [10 * i for i in range(1, 2 * LARGEST)]
    assert {len(requests) for _, requests in held.batches[1:3]} == {LARGEST // 2}
    assert (good.result(10), other.result(10), held.submit("a", 3).result(10)) == (10, 20, 30)
    with pytest.raises(DataError):
        faulty.result(10)
    assert 7777 not in [request for _, requests in held.batches for request in requests]


def test_too_many_requests_are_refused(monkeypatch):
    monkeypatch.setattr(batcher, "MOST_WAITING", 3)
    held = Held()
    for number in range(3):
        held.submit("a", number)
    with pytest.raises(queue.Full):
        held.submit("a", 3)
    held.released.set()
