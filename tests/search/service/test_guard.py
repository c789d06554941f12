"""Slow and silent clients, and answers that never come."""

import asyncio
import contextlib
import json
import socket
import time
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from starlette.testclient import TestClient

from manymatch.search.service import guard
from manymatch.search.service.guard import Guard, Rate, read_body

from .conftest import serving

ADDRESS = "http://127.0.0.1"
LARGE = 2**24
SEEN = []
"""Paths and statuses of the requests of a test."""


@pytest.fixture
def app():
    SEEN.clear()
    inner = FastAPI()

    @inner.get("/never")
    async def never() -> None:
        await asyncio.sleep(60)

    @inner.get("/large")
    async def large() -> Response:
        return Response(bytes(LARGE))

    @inner.post("/body")
    async def body(request: Request) -> int:
        return len(await read_body(request, 1000))

    @inner.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Any:
        return guard.refusal(500, "a defect")

    @inner.exception_handler(guard.HTTPException)
    async def refused(request: Request, error: guard.HTTPException) -> Any:
        return guard.refusal(error.status_code, error.detail)

    def note(scope, status, seconds):
        SEEN.append((scope["path"], status))

    return Guard(inner, "127.0.0.1", Rate(1000), note)


def test_an_answer_that_never_comes_ends(app, monkeypatch):
    monkeypatch.setattr(guard, "_SECONDS", 0.05)
    answer = TestClient(app, ADDRESS).get("/never")
    assert answer.status_code == 504 and "error" in answer.json()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert SEEN == [("/never", 504)]


@pytest.fixture
def port(app):
    with serving(app) as port:
        yield port


def received(port, data):
    """All that the server sends before it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(data)
        return read_all(client)


HEAD = b"POST /body HTTP/1.1\r\nhost: 127.0.0.1\r\n"


def test_a_client_that_is_slow_or_silent_or_sends_too_much_is_left(port, monkeypatch):
    for limit, data, answer in (
        ("_SECONDS", HEAD + b"content-length: 99999999999\r\nconnection: close\r\n\r\n", b" 413 "),
        ("_BODY_SECONDS", HEAD + b"content-length: 100\r\nconnection: close\r\n\r\nx", b" 408 "),
        ("_HEAD_SECONDS", b"", None),
        ("_HEAD_SECONDS", b"GET / HTTP/1.1\r\nhost: 12", None),
        ("_HEAD_SECONDS", HEAD + b"content-length: 2\r\n\r\nabGET / HT", b"\r\n\r\n2"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(guard, limit, 5.0 if limit == "_SECONDS" else 0.1)
            said = received(port, data)
        assert answer in said if answer else not said


def test_a_client_that_takes_no_answer_is_left(port, monkeypatch):
    monkeypatch.setattr(guard, "_HEAD_SECONDS", 0.1)
    monkeypatch.setattr(guard, "_SECONDS", 0.5)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(20)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /large HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 3)
        time.sleep(2)  # a client that reads would get all of the answer
        assert len(read_all(client)) < LARGE


def read_all(client):
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            answer += piece
    return answer


def test_what_is_not_http_is_refused_in_one_line(port, capfd):
    chunked, chunk = b"transfer-encoding: chunked\r\n\r\n", b"zz\r\n"
    for data in (
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",  # TLS
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.com\r\n\r\n",
        HEAD + b"content-length: abc\r\n\r\n",
        HEAD + chunked + chunk,
    ):
        head, _, body = received(port, data).partition(b"\r\n\r\n")
        assert b" 400 " in head and b"nosniff" in head
        assert "HTTP" in json.loads(body)["error"]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(HEAD.replace(b"/body", b"/none") + chunked)
        assert b" 404 " in client.recv(65536)
        client.sendall(chunk)  # the rest is malformed, but the answer is sent
        assert b" 400 " not in read_all(client)
    assert "Traceback" not in capfd.readouterr().err


def test_the_connection_that_is_silent_longest_makes_room(port, monkeypatch):
    monkeypatch.setattr(guard, "_MOST_CONNECTIONS", 5)
    with contextlib.ExitStack() as stack:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(12)]
        for client in silent:
            stack.enter_context(client)
        assert b" 404 " in received(port, b"GET / HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")
        assert all(read_all(client) == b"" for client in silent[:8])
        silent[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            silent[-1].recv(1)
    monkeypatch.setattr(guard.resource, "getrlimit", lambda of: (64, 64))
    monkeypatch.setattr(guard, "_MOST_CONNECTIONS", 500)
    assert guard.most_connections() == 16  # so that there are files left for requests
    monkeypatch.setattr(guard.resource, "getrlimit", lambda of: (-1, -1))
    assert guard.most_connections() == 500


def test_a_client_that_hangs_up_does_no_harm(port):
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(HEAD + b"content-length: 100\r\n\r\nabc")
    assert b" 200 " in received(port, HEAD + b"content-length: 1\r\nconnection: close\r\n\r\na")
    assert {status for _, status in SEEN} <= {200, 400}


def test_a_page_of_another_site_follows_links_alone(app):
    client, asked = TestClient(app, ADDRESS), {"sec-fetch-site": "cross-site"}
    assert client.post("/body", content=b"x", headers=asked).status_code == 403
    assert client.get("/none", headers=asked | {"sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get("/none", headers=asked | {"sec-fetch-mode": "navigate"}).status_code == 404
    for site in ("same-origin", "same-site", "none"):
        assert client.post("/body", content=b"x", headers={"sec-fetch-site": site}).json() == 1


def test_an_address_of_very_many_parameters_holds_nobody_up(app):
    client = TestClient(app, ADDRESS)
    assert client.get("/none?" + "&".join(f"x{n}=1" for n in range(2_000))).status_code == 400
    assert client.get("/none?" + "&".join(f"x{n}=1" for n in range(1_000))).status_code == 404


def test_a_client_waits_after_too_many_requests(monkeypatch):
    now = 0.0
    monkeypatch.setattr(guard.time, "monotonic", lambda: now)
    limit = Rate(10)
    assert [limit.admits("a") for _ in range(21)] == [True] * 20 + [False]
    assert limit.admits("b")
    now = 0.1
    assert [limit.admits("a") for _ in range(2)] == [True, False]
    now = 100.0
    assert sum(limit.admits("a") for _ in range(30)) == 20
    monkeypatch.setattr(guard, "_MOST_CLIENTS", 2)
    assert limit.admits("c") and limit.admits("d")  # the oldest client, "a", is forgotten
    assert sum(limit.admits("a") for _ in range(30)) == 20
