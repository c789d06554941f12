"""HTTP answers that must arrive at a least speed, and whose headers must end.

Timeouts of sockets are for one read each, so that a server which sends a byte now and then would
hold a download for ever.
"""

from __future__ import annotations

import io
import time
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib import request
from urllib.parse import urlsplit

from manymatch.fetching.faults import Pace, Passing

MOST_AT_ONCE = 2**20
"""The most bytes of a connection for all headers, or for one block of the body. A body in chunks
has more bytes than its content."""


class _WatchedBytes(io.RawIOBase):
    """The bytes of a connection. Only the time that reads take counts."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw, self._pace = raw, Pace()
        self.left = MOST_AT_ONCE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        begun = time.monotonic()
        count = self._raw.readinto(buffer)
        self._pace.add(count or 0, time.monotonic() - begun)
        self.left -= count or 0
        if self.left < 0:
            raise Passing("endless headers or trailers")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class WatchedResponse(HTTPResponse):
    """An answer of a watched connection."""

    def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self._bytes = _WatchedBytes(sock.makefile("rb", buffering=0))
        self.fp = io.BufferedReader(self._bytes)

    def read(self, amt: int | None = None) -> bytes:
        self._bytes.left = MOST_AT_ONCE
        return super().read(amt)


class _Watching(request.AbstractHTTPHandler):
    def do_open(self, http_class: Any, req: request.Request, **options: Any) -> Any:
        def connect(host: str, **more: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(host, **more)
            connection.response_class = WatchedResponse
            return connection

        return super().do_open(connect, req, **options)


class _Http(_Watching, request.HTTPHandler):
    pass


class _Https(_Watching, request.HTTPSHandler):
    pass


class _Redirects(request.HTTPRedirectHandler):
    """Redirects to HTTP and HTTPS alone. Their bodies, which may be endless, are not read."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        fp.close()
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise ValueError(f"a redirect to {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def opener() -> request.OpenerDirector:
    """Opens HTTP and HTTPS only: a redirect cannot lead to a local file or another protocol."""
    director = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        _Http,
        _Https,
        request.HTTPDefaultErrorHandler,
        _Redirects,
        request.HTTPErrorProcessor,
    ):
        director.add_handler(handler())
    return director
