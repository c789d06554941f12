"""Download one file over HTTP: from the first mirror that has it, going on where it was cut off.

Beside the file `NAME` lie, while it is fetched, `NAME.partial` with the bytes so far and
`NAME.json` with what they are bytes of. Nothing stands under `NAME` before it is complete and has
the expected size and checksum.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib import request
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit

from manymatch import __version__, files
from manymatch.datasets.disk import require_space
from manymatch.errors import SourceError
from manymatch.progress import say, track

_PAUSES: tuple[float, ...] = (1, 2, 4, 8, 16)
"""Seconds between the rounds over the mirrors."""
_TIMEOUT = 30.0
_READ = 2**16
_MEBIBYTE = 2**20
_PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may be gone a little later; any other fault is the mirror's last word."""


class _Passing(Exception):
    """A fault that another attempt may not meet."""


class _Final(Exception):
    """A fault that this mirror will show again."""


class _Stale(Exception):
    """The bytes that are here are not the beginning of what the server has now."""


class _Complete(Exception):
    """The server has no bytes after those that are here."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file beforehand."""

    size: int | None = None
    sha256: str | None = None

    def fault(self, path: Path) -> str | None:
        """How the file at `path` differs, in words."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"it has {size} bytes, expected {self.size}"
        if self.sha256 is None:
            return None
        found = files.sha256(path)
        return None if found == self.sha256 else f"its sha256 is {found}, expected {self.sha256}"


@dataclass(frozen=True)
class _Origin:
    """What the bytes of a partial download are bytes of."""

    url: str
    validator: str | None
    """The file's version in the server's words: a strong ETag or a date."""


def fetch(urls: Sequence[str], target: Path, expected: Expected, what: str) -> None:
    """Download `target` from the first of `urls` that gives it whole.

    Raises `SourceError` with every mirror's fault, `StorageError` where the disk is too small.
    """
    if _finished(target, expected):
        return
    left, faults = list(urls), dict[str, str]()
    for pause in (*_PAUSES, None):
        if _fetched_from_any(left, target, expected, faults):
            return
        if not left or pause is None:
            break
        say(f"{what}: {'; '.join(faults.values())}; trying again in {pause:g} s")
        time.sleep(pause)
    raise SourceError(f"{what}: {_listed(faults)}; correct the source or name a mirror of it")


def _fetched_from_any(
    left: list[str], target: Path, expected: Expected, faults: dict[str, str]
) -> bool:
    """Whether one of the mirrors in `left` gave the file; those that never will are taken out."""
    for url in tuple(left):
        try:
            _fetch_from(url, target, expected)
            return True
        except (_Passing, _Final) as fault:
            faults[url] = str(fault)
            if isinstance(fault, _Final):
                left.remove(url)
    return False


def _finished(target: Path, expected: Expected) -> bool:
    """Whether `target` is there and certain; without a checksum the server is asked (a resume)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        return False
    if expected.sha256 and expected.fault(target) is None:
        return True
    target.replace(files.partial_path(target))
    return False


def _fetch_from(url: str, target: Path, expected: Expected) -> None:
    partial = files.partial_path(target)
    with files.storage_errors(target):
        resumed = _download(url, target, expected)
        fault = expected.fault(partial)
        if fault:
            # Bytes of two versions may have met in a resumed file: it deserves a fresh start.
            files.remove(partial)
            raise (_Passing if resumed else _Final)(fault)
        partial.replace(target)


def _download(url: str, target: Path, expected: Expected) -> bool:
    """Fill the partial file, connecting again as long as each connection brought it further.

    Returns whether its bytes came over more than one connection.
    """
    partial, resumed = files.partial_path(target), False
    while True:
        before = _size(partial)
        try:
            return _connect_once(url, target, expected) or resumed
        except _Stale:
            say(f"{target.name}: it has changed on the server; starting again")
            files.remove(partial)
        except _Passing as fault:
            if _size(partial) <= before:
                raise
            say(f"{target.name}: {fault}; going on after {_size(partial)} bytes")
            resumed = True
            time.sleep(_PAUSES[0])


def _connect_once(url: str, target: Path, expected: Expected) -> bool:
    """One connection that gives the rest of the file. Returns whether there was a beginning."""
    partial = files.partial_path(target)
    known = _read_origin(target)
    start = _resume_point(url, partial, known, expected)
    validator = known.validator if known and known.url == url else None
    try:
        response = _open(url, start, validator)
    except _Complete:
        return True
    with response:
        if response.status != 206:
            start = 0
        elif _range_start(response.headers) != start or _changed(response.headers, validator):
            raise _Stale if start else _Final("it answers with a range that nobody asked for")
        total = _total(response, start)
        if expected.size is not None and total not in (None, expected.size):
            raise _Final(f"it has {total} bytes, expected {expected.size}")
        require_space(partial.parent, (total or start) - start, target.name)
        origin = _Origin(url, _validator(response.headers))
        files.write_json(_origin_path(target), asdict(origin))
        _save(response, target, start, total, expected.size)
    return start > 0


def _save(
    response: HTTPResponse, target: Path, start: int, total: int | None, limit: int | None
) -> None:
    """Append the body after byte `start`; a body shorter than promised is a passing fault."""
    partial = files.partial_path(target)
    with partial.open("ab" if start else "wb") as stream:
        stream.truncate(start)
        steps = None if total is None else -(-(total - start) // _MEBIBYTE)
        for _ in track(_copy(response, stream), f"{target.name} (MiB)", total=steps):
            if total is None:
                require_space(partial.parent, _MEBIBYTE, target.name)
            if limit is not None and stream.tell() > limit:
                files.remove(partial)
                raise _Final(f"it has more than the expected {limit} bytes")
    if total is not None and _size(partial) < total:
        raise _Passing(f"connection cut after {_size(partial)} of {total} bytes")


def _copy(response: HTTPResponse, stream: BinaryIO) -> Iterator[None]:
    """Write the body to `stream`; yield once a mebibyte. What came before a cut is kept."""
    written = 0
    while block := _read(response):
        stream.write(block)
        written += len(block)
        if written >= _MEBIBYTE:
            written -= _MEBIBYTE
            yield
    yield


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(_READ)
    except (OSError, HTTPException) as error:
        raise _Passing(f"connection cut ({_reason(error)})") from None


def _open(url: str, start: int, validator: str | None) -> HTTPResponse:
    """The response to a request for the bytes from `start` on."""
    headers = {"User-Agent": f"manymatch/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if validator:
            headers["If-Range"] = validator
    try:
        return _opener().open(request.Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        if start and error.code == 416:
            whole = error.headers.get("Content-Range") == f"bytes */{start}"
            raise (_Complete if whole else _Stale) from None
        kind = _Passing if error.code in _PASSING else _Final
        raise kind(f"HTTP {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise _Passing(_reason(error)) from None


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


def _resume_point(url: str, partial: Path, known: _Origin | None, expected: Expected) -> int:
    """From which byte to ask: 0 unless the bytes that are here can be told to belong."""
    same_version = known is not None and known.url == url and known.validator is not None
    return _size(partial) if same_version or expected.sha256 else 0


def _validator(headers: HTTPMessage) -> str | None:
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


def _changed(headers: HTTPMessage, validator: str | None) -> bool:
    found = _validator(headers)
    return None not in (found, validator) and found != validator


def _range_start(headers: HTTPMessage) -> int | None:
    match = re.match(r"bytes (\d+)-", headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _total(response: HTTPResponse, start: int) -> int | None:
    """Bytes of the whole file, if the server says so."""
    return None if response.length is None else start + response.length


def _read_origin(target: Path) -> _Origin | None:
    """None where nothing, or nothing sensible, was noted: then the download starts afresh."""
    try:
        return _Origin(**json.loads(_origin_path(target).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _origin_path(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split()) or type(error).__name__


def _listed(faults: dict[str, str]) -> str:
    return "; ".join(f"{_shown(url)}: {fault}" for url, fault in faults.items())


def _shown(url: str) -> str:
    """Without the query, which may hold a key that is nobody's business."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))
