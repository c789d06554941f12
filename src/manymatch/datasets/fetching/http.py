"""One HTTP request for a file, what the answer says about the file, and what can go wrong.

Answers must arrive at a least speed, and their headers must end. Timeouts of sockets are for one
read each, so that a server which sends a byte now and then would hold a download for ever.
"""

from __future__ import annotations

import errno
import io
import re
import socket
import string
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from pathlib import PurePosixPath
from typing import Any
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from manymatch import __version__

_TIMEOUT = 30.0
_READ = 2**16
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may go away. Other error codes are final."""
_MOST_AT_ONCE = 2**20
"""The most bytes of a connection for all headers, or for one block of the body. A body in chunks
has more bytes than its content."""
_LONGEST = 2**50
"""Bytes. A server that states a longer file is wrong."""
_NO_WAY = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}

WINDOW = 20.0
"""Seconds of waiting after which the speed is measured."""
LEAST_SPEED = 1024
"""Bytes per second."""


class Passing(Exception):
    """A fault that may be gone at the next attempt."""


class Unreachable(Passing):
    """The host cannot be reached: its name is unknown, or no network leads to it."""


class Final(Exception):
    """A fault that this mirror will have again."""


class Stale(Exception):
    """The present bytes do not belong to the file that the server has now."""


class NoParts(Exception):
    """The server announced that it serves parts of files, but does not."""


class Complete(Exception):
    """The server has no more bytes than the present ones."""


class Pace:
    """The speed of a server, over windows of `WINDOW` seconds."""

    def __init__(self) -> None:
        self._bytes, self._seconds = 0, 0.0

    def add(self, count: int, seconds: float) -> None:
        """Count bytes and the time that they took.

        Raises:
            Passing: the server is slower than `LEAST_SPEED`.
        """
        self._bytes, self._seconds = self._bytes + count, self._seconds + seconds
        if self._seconds < WINDOW:
            return
        if self._bytes < LEAST_SPEED * self._seconds:
            raise Passing(
                f"only {self._bytes:,} bytes in {self._seconds:.0f} s, slower than "
                f"{LEAST_SPEED:,} bytes per second"
            )
        self._bytes, self._seconds = 0, 0.0


@dataclass(frozen=True)
class Span:
    """The bytes from `start` to the end of the file, or up to but without `end`."""

    start: int = 0
    end: int | None = None

    @property
    def header(self) -> str | None:
        if self.end is not None:
            return f"bytes={self.start}-{self.end - 1}"
        return f"bytes={self.start}-" if self.start else None


def ask(url: str, span: Span, validator: str | None) -> HTTPResponse:
    """Request the bytes of `span` of the version `validator` of a file.

    Raises:
        Passing, Final: the request failed.
        Complete, Stale: the file ends before `span`.
    """
    headers = {"User-Agent": f"manymatch/{__version__}", "Accept-Encoding": "identity"}
    if span.header:
        headers["Range"] = span.header
        if validator:
            headers["If-Range"] = validator
    try:
        # Characters outside ASCII are percent-encoded, as browsers do.
        query = request.Request(quote(url, safe=string.punctuation), headers=headers)
        response = _opener().open(query, timeout=_TIMEOUT)
    except HTTPError as error:
        if span.start and error.code == 416:
            whole = error.headers.get("Content-Range") == f"bytes */{span.start}"
            raise (Complete if whole else Stale) from None
        error.close()
        kind = Passing if error.code in _PASSING else Final
        raise kind(f"HTTP {error.code} {_reason(error)}") from None
    except (OSError, HTTPException) as error:
        kind = Unreachable if _has_no_way(error) else Passing
        raise kind(_reason(error)) from None
    except ValueError as error:
        raise Final(f"the address or a redirect is not valid ({_reason(error)})") from None
    _refuse_status(response)
    _refuse_length(response)
    _refuse_page(url, response)
    return response


def _has_no_way(error: Exception) -> bool:
    cause = getattr(error, "reason", error)
    return isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in _NO_WAY


def _refuse_status(response: HTTPResponse) -> None:
    """Refuse successes that are no file: nothing (204, 205), work for later (202), a changed file
    (203)."""
    if response.status not in (200, 206):
        response.close()
        raise Final(f"HTTP {response.status} {response.reason}, which is not the file")


def _refuse_length(response: HTTPResponse) -> None:
    """Refuse a length that is no number, or larger than any file. Chunks have no length."""
    unreadable = response.length is None and "Content-Length" in response.headers
    if (unreadable and not response.chunked) or (response.length or 0) > _LONGEST:
        response.close()
        raise Final("the server states an impossible length")


def _refuse_page(url: str, response: HTTPResponse) -> None:
    """Refuse a web page: many dead links return an HTML page instead of the file."""
    is_page = response.headers.get_content_type() in ("text/html", "application/xhtml+xml")
    ending = PurePosixPath(urlsplit(url).path).suffix.lower()
    if is_page and ending not in (".html", ".htm"):
        response.close()
        raise Final("the server sends a web page instead of the file")


def blocks(response: HTTPResponse) -> Iterator[bytes]:
    """The body in blocks. A cut connection is a `Passing` fault."""
    while True:
        try:
            block = response.read(_READ)
        except (OSError, HTTPException) as error:
            raise Passing(f"connection cut ({_reason(error)})") from None
        if not block:
            return
        yield block


def version(headers: HTTPMessage) -> str | None:
    """The version of the file that the server states: a strong ETag or a date."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def changed(headers: HTTPMessage, validator: str | None) -> bool:
    """Whether the server states another version than `validator`."""
    current = version(headers)
    return None not in (current, validator) and current != validator


def answered_range(headers: HTTPMessage) -> tuple[int, int | None] | None:
    """First byte of the part and length of the whole file, from the header of a part.

    None: there is no such header, or its numbers make no sense.
    """
    stated = str(headers.get("Content-Range", "")).strip()
    match = re.fullmatch(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15}|\*)", stated)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    total = None if match[3] == "*" else int(match[3])
    return (first, total) if first <= last < (total or _LONGEST) else None


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()) or type(error).__name__


class _WatchedBytes(io.RawIOBase):
    """The bytes of a connection. Only the time that reads take counts."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw, self._pace = raw, Pace()
        self.left = _MOST_AT_ONCE

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


class _WatchedResponse(HTTPResponse):
    """An answer of a watched connection."""

    def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self._bytes = _WatchedBytes(sock.makefile("rb", buffering=0))
        self.fp = io.BufferedReader(self._bytes)

    def read(self, amt: int | None = None) -> bytes:
        self._bytes.left = _MOST_AT_ONCE
        return super().read(amt)


class _Watching(request.AbstractHTTPHandler):
    def do_open(self, http_class: Any, req: request.Request, **options: Any) -> Any:
        def connect(host: str, **more: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(host, **more)
            connection.response_class = _WatchedResponse
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


def _opener() -> request.OpenerDirector:
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
