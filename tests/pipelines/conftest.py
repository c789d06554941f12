"""One service for all tests of runs; it starts once."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest
from service import make_service

from pipelines.graph import read_graph


@pytest.fixture(scope="session")
def graph(root):
    return read_graph(root)


@pytest.fixture(scope="session")
def alerts():
    """What the service reports to the address in `MANYMATCH_WEBHOOK`."""
    received = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            received.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
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
def service(root, tmp_path_factory, alerts):
    """A tiny checkout that is served; nothing of it is run yet."""
    served = make_service(root, tmp_path_factory.mktemp("service"))
    try:
        served.serve()
        yield served
    finally:
        if served.processes("prefect"):
            served.stop()
