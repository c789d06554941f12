"""One request for a file over HTTP, and what its answer says of the file."""

from __future__ import annotations

import errno
import re
import socket
import string
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import PurePosixPath
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from manymatch import __version__

_TIMEOUT = 30.0
_READ = 2**16
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may be gone a little later; any other fault is the mirror's last word."""
_NO_WAY = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}


class Passing(Exception):
    """A fault that another attempt may not meet."""


class Unreachable(Passing):
    """There is no way to the host: nobody knows its name, or no network leads to it."""


class Final(Exception):
    """A fault that this mirror will show again."""


class Stale(Exception):
    """The bytes that are here are not those of what the server has now."""


class NoParts(Exception):
    """The server said that it gives parts of files, and does not."""


class Complete(Exception):
    """The server has no bytes after those that are here."""


@dataclass(frozen=True)
class Span:
    """The bytes from `start` on, or up to but without `end`."""

    start: int = 0
    end: int | None = None

    @property
    def header(self) -> str | None:
        if self.end is not None:
            return f"bytes={self.start}-{self.end - 1}"
        return f"bytes={self.start}-" if self.start else None


def ask(url: str, span: Span, validator: str | None) -> HTTPResponse:
    """The response to a request for the bytes of `span`, of the file's version `validator`."""
    headers = {"User-Agent": f"manymatch/{__version__}", "Accept-Encoding": "identity"}
    if span.header:
        headers["Range"] = span.header
        if validator:
            headers["If-Range"] = validator
    try:
        # What is not ASCII is written in hexadecimals, as browsers do.
        asked = request.Request(quote(url, safe=string.punctuation), headers=headers)
        response = _opener().open(asked, timeout=_TIMEOUT)
    except HTTPError as error:
        if span.start and error.code == 416:
            whole = error.headers.get("Content-Range") == f"bytes */{span.start}"
            raise (Complete if whole else Stale) from None
        kind = Passing if error.code in _PASSING else Final
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        kind = Unreachable if _has_no_way(error) else Passing
        raise kind(_reason(error)) from None
    except ValueError as error:
        raise Final(f"it is, or leads to, no address ({_reason(error)})") from None
    _refuse_page(url, response)
    return response


def _has_no_way(error: Exception) -> bool:
    cause = getattr(error, "reason", error)
    return isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in _NO_WAY


def _refuse_page(url: str, response: HTTPResponse) -> None:
    """Many a dead link leads to somebody's front page instead of to 404."""
    is_page = response.headers.get_content_type() in ("text/html", "application/xhtml+xml")
    ending = PurePosixPath(urlsplit(url).path).suffix.lower()
    if is_page and ending not in (".html", ".htm"):
        response.close()
        raise Final("it answers with a web page, not with the file")


def blocks(response: HTTPResponse) -> Iterator[bytes]:
    """The body as it comes; a cut is a `Passing` fault."""
    while True:
        try:
            block = response.read(_READ)
        except (OSError, HTTPException) as error:
            raise Passing(f"connection cut ({_reason(error)})") from None
        if not block:
            return
        yield block


def _opener() -> request.OpenerDirector:
    """HTTP and HTTPS alone: a redirect never leads to a local file or another protocol."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.UnknownHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def version(headers: HTTPMessage) -> str | None:
    """The file's version in the server's words: a strong ETag or a date."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def changed(headers: HTTPMessage, validator: str | None) -> bool:
    """Whether the file is another than that of `validator`, as far as the server tells."""
    found = version(headers)
    return None not in (found, validator) and found != validator


def answered_range(headers: HTTPMessage) -> tuple[int, int | None] | None:
    """First byte and bytes of the whole file, from the header of a part."""
    match = re.match(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", ""))
    if match is None:
        return None
    return int(match[1]), None if match[2] == "*" else int(match[2])


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()) or type(error).__name__
