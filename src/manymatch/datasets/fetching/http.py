"""One HTTP request for a file, what the answer says about the file, and what can go wrong.

The timeouts of httpx are for one read each, so that a server that sends a byte now and then would
hold a download for ever. Therefore everything before the body has a deadline, and the body a least
speed.
"""

import contextlib
import functools
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from manymatch import __version__
from manymatch.util.errors import told

if TYPE_CHECKING:
    from httpx import Client, Request, Response

DEADLINE = 60.0
"""Seconds for the connection, all redirects and all headers together."""
WINDOW = 20.0
"""Seconds after which the speed is measured, and the longest wait for a byte."""
LEAST_SPEED = 1024
"""Bytes per second."""
_REDIRECTS = 10
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may go away. Other error codes are final."""


class Passing(Exception):
    """A fault that may be gone at the next attempt."""


class Unreachable(Passing):
    """There is no connection to the host."""


class Final(Exception):
    """A fault that this mirror will have again."""


class Stale(Exception):
    """The present bytes do not belong to the file that the server has now."""


class Answer(NamedTuple):
    """The bytes of a file from `start` on.

    `total`: the bytes of the whole file, if the server states them. `version`: a strong ETag or a
    date, if the server states one. `blocks`: the bytes; a cut connection is a `Passing` fault.
    """

    start: int
    total: int | None
    version: str | None
    blocks: Iterator[bytes] = iter(())


@contextlib.contextmanager
def opened(url: str, start: int, validator: str | None) -> Iterator[Answer]:
    """Request the bytes of a file from `start` on, of the version `validator`.

    The answer may start at 0 instead. Proxies come from the environment, the trusted certificates
    from the system.

    Raises:
        Passing, Final: the request failed, or the answer is not the file.
        Stale: the file is another version.
    """
    import httpx  # takes 0.3 s, and most commands download nothing

    headers = {"User-Agent": f"manymatch/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-"} | ({"If-Range": validator} if validator else {})
    with contextlib.ExitStack() as stack:
        watch = _Watch()
        stack.callback(watch.end)
        with _faults(watch):
            client = stack.enter_context(
                httpx.Client(headers=headers, timeout=WINDOW, verify=_trusted())
            )
            request = client.build_request("GET", url, extensions={"trace": watch.trace})
            response = _follow(client, request)
            stack.callback(response.close)
        answer = _answer(url, response, start, validator)
        whole = answer.start == answer.total
        yield answer if whole else answer._replace(blocks=_blocks(response, watch))


class _Watch:
    """A thread that ends the connection when the time `until` has passed."""

    def __init__(self) -> None:
        self.until = time.monotonic() + DEADLINE
        self.is_late = False
        self._connections: list[socket.socket] = []
        self._ended = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def trace(self, event: str, details: dict[str, Any]) -> None:
        """Note the connection that httpx has made. TLS would take the original socket away."""
        if event == "connection.connect_tcp.complete":
            self._connections.append(details["return_value"].get_extra_info("socket").dup())
            if self.is_late:
                self._shut()

    def _wait(self) -> None:
        while (left := self.until - time.monotonic()) > 0:
            if self._ended.wait(left):
                return
        self.is_late = True
        self._shut()

    def _shut(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(OSError):  # the server was faster
                connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Stop the thread."""
        self._ended.set()
        for connection in self._connections:
            connection.close()


@functools.cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _follow(client: "Client", request: "Request") -> "Response":
    """The answer after all redirects, whose bodies, which may be endless, are not read."""
    for _ in range(_REDIRECTS + 1):
        response = client.send(request, stream=True)
        if response.next_request is None:
            return response
        response.close()
        request = response.next_request
    raise Final(f"more than {_REDIRECTS} redirects")


def _blocks(response: "Response", watch: _Watch) -> Iterator[bytes]:
    """The body. The watch sees bytes that belong to no block, such as the sizes of chunks."""
    stream, data = response.iter_raw(), b"first"
    while data:
        watch.until = time.monotonic() + 2 * WINDOW
        with _faults(watch):
            data = next(stream, b"")
        yield data


@contextlib.contextmanager
def _faults(watch: _Watch) -> Iterator[None]:
    """Turn the errors of httpx into faults."""
    import httpx

    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, ImportError, OSError) as error:
        reason = told(error)
        if watch.is_late or isinstance(error, httpx.TimeoutException):
            raise Passing("timed out: the server does not answer in time") from None
        if isinstance(error, httpx.ConnectError):
            raise Unreachable(reason) from None
        passing = isinstance(error, httpx.HTTPError | OSError)
        if passing and not isinstance(error, httpx.UnsupportedProtocol):
            raise Passing(reason) from None
        raise Final(f"the address, a redirect or a proxy is not valid ({reason})") from None


def _answer(url: str, response: "Response", start: int, validator: str | None) -> Answer:
    """What the answer says about the file, without the bytes.

    Successes that are no file are refused: nothing (204, 205), work for later (202), a changed file
    (203), and web pages, which many dead links give.
    """
    status, headers = response.status_code, response.headers
    if start and status == 416:  # nothing is left after the present bytes, or the file has changed
        if headers.get("Content-Range") == f"bytes */{start}":
            return Answer(start, start, validator)
        raise Stale
    if status >= 400:
        kind = Passing if status in _PASSING else Final
        raise kind(f"HTTP {status} {response.reason_phrase}")
    if status not in (200, 206):
        raise Final(f"HTTP {status} {response.reason_phrase}, which is not the file")
    content = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    ending = PurePosixPath(urlsplit(url).path).suffix.lower()
    if content in ("text/html", "application/xhtml+xml") and ending not in (".html", ".htm"):
        raise Final("the server sends a web page instead of the file")
    # Chunks have no length. A length is digits, or httpx had refused it.
    stated = "" if "Transfer-Encoding" in headers else headers.get("Content-Length", "")
    if len(stated) > 15:
        raise Final("the server states an impossible length")
    length = int(stated) if stated else None
    etag = headers.get("ETag")
    version = etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")
    if status == 200:
        return Answer(0, length, version)
    part = re.fullmatch(
        r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15}|\*)", headers.get("Content-Range", "").strip()
    )
    total = int(part[3]) if part and part[3] != "*" else None
    fits = part and start == int(part[1]) <= int(part[2]) < (total or 10**15)
    if not fits or (None not in (version, validator) and version != validator):
        raise Stale if start else Final("the server sends another range than the wanted one")
    return Answer(start, start + length if total is None and length is not None else total, version)
