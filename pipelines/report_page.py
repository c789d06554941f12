"""`python -m pipelines.report_page PORT FOLDER`: the pages of the reports, for this machine alone.

A page of another site whose name leads to 127.0.0.1 is of one origin with this server in a browser.
So requests with another name than this machine's are refused.
"""

from __future__ import annotations

import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"
_NAMES = HOST, "localhost"


class _Reports(SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        name, _, port = self.headers.get("Host", "").partition(":")
        if name in _NAMES and (port.isdecimal() or not port):
            return super().send_head()
        self.send_error(HTTPStatus.MISDIRECTED_REQUEST, f"Open http://{HOST}")
        return None


def server(port: int, folder: str) -> ThreadingHTTPServer:
    """A server of the files in `folder`."""
    return ThreadingHTTPServer((HOST, port), partial(_Reports, directory=folder))


if __name__ == "__main__":
    server(int(sys.argv[1]), sys.argv[2]).serve_forever()
