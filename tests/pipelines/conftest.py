"""One service for all tests of runs; it starts once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest
from service import Service, make_service

from pipelines.graph import Graph, read_graph


@pytest.fixture(scope="session")
def graph(root: Path) -> Graph:
    return read_graph(root)


@pytest.fixture(scope="session")
def alerts() -> Iterator[Queue[dict[str, str]]]:
    """What the service reports to the address in `MANYMATCH_WEBHOOK`."""
    received: Queue[dict[str, str]] = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        patch.setenv("MANYMATCH_WEBHOOK", f"http://127.0.0.1:{server.server_port}/hook")
        yield received
        server.shutdown()


@pytest.fixture(scope="session")
def service(
    root: Path, tmp_path_factory: pytest.TempPathFactory, alerts: Queue[dict[str, str]]
) -> Iterator[Service]:
    """A tiny checkout that is served; nothing of it is run yet."""
    served = make_service(root, tmp_path_factory.mktemp("service"))
    try:
        served.serve()
        yield served
    finally:
        served.stop()
