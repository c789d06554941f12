"""One HTTP request for a file, and what the answer says about the file."""

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
from manymatch.fetching.faults import Complete, Final, Passing, Stale, Unreachable
from manymatch.fetching.watched import opener

_TIMEOUT = 30.0
_READ = 2**16
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may go away. Other error codes are final."""
_LONGEST = 2**50
"""Bytes. A server that states a longer file is wrong."""
_NO_WAY = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}


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
        response = opener().open(query, timeout=_TIMEOUT)
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
    _refuse_length(response)
    _refuse_page(url, response)
    return response


def _has_no_way(error: Exception) -> bool:
    cause = getattr(error, "reason", error)
    return isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in _NO_WAY


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
    match = re.fullmatch(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15}|\*)", _content_range(headers))
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    total = None if match[3] == "*" else int(match[3])
    return (first, total) if first <= last < (total or _LONGEST) else None


def _content_range(headers: HTTPMessage) -> str:
    return str(headers.get("Content-Range", "")).strip()


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()) or type(error).__name__
