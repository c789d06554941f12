"""Download one file over HTTP from the first mirror that has it, and resume interrupted downloads.

`unfinished.py` says what lies on the disk meanwhile. The file itself appears only when it is
complete and has the expected size and checksum. Large files are fetched over several connections
(`connections.py`) from hosts that serve parts of a file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from manymatch.datasets.fetching import connections as parallel
from manymatch.datasets.fetching.disk import require_space
from manymatch.datasets.fetching.http import (
    Complete,
    Final,
    NoParts,
    Pace,
    Passing,
    Span,
    Stale,
    Unreachable,
    answered_range,
    ask,
    blocks,
    changed,
    version,
)
from manymatch.datasets.fetching.unfinished import Origin, Unfinished
from manymatch.util import files
from manymatch.util.errors import ManyMatchError, SourceError, StorageError
from manymatch.util.progress import say, track, working

_PAUSES: tuple[float, ...] = (1, 2, 4, 8, 16)
"""Seconds between the rounds over the mirrors."""
_ROUNDS_OFFLINE = 3
"""Rounds before giving up if no host can be reached and no byte arrived."""
_MEBIBYTE = 2**20
Faults = dict[str, Passing | Final | StorageError]
"""The last fault of every mirror."""
Check = Callable[[Path], None]
"""Reads a file, and raises one of our errors if the file is not the wanted one or not whole."""


@dataclass(frozen=True)
class Expected:
    """What is known about a file beforehand. Without a checksum, `check` reads the file."""

    size: int | None = None
    sha256: str | None = None
    check: Check | None = None

    def fault(self, path: Path) -> str | None:
        """How the file at `path` differs from what is expected, in words; None if it does not."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"it has {size} bytes, expected {self.size}"
        if self.sha256 is None:
            return _refusal(self.check, path) if self.check else None
        with working(f"check the sha256 of {path.name}"):
            digest = files.sha256(path)
        return None if digest == self.sha256 else f"its sha256 is {digest}, expected {self.sha256}"


def _refusal(check: Check, path: Path) -> str | None:
    try:
        check(path)
    except StorageError:
        raise
    except ManyMatchError as error:
        return str(error).replace(str(path), path.name.removesuffix(".partial"))
    return None


def fetch(
    urls: Sequence[str], target: Path, expected: Expected, what: str, connections: int = 1
) -> None:
    """Download `target` from the first of `urls` that serves it whole.

    Args:
        what: the name of the file in messages.
        connections: the most connections at once to one host.

    Raises:
        SourceError: no mirror serves the file. Names the fault of every mirror.
        StorageError: the disk is too small for the file of every mirror.
    """
    if _is_finished(target, expected):
        return
    unfinished = Unfinished(target)
    with files.storage_errors(target):
        unfinished.drop_others()
    mirrors, faults, progress_before = list(urls), Faults(), unfinished.progress
    advice = "Correct the source or name a mirror of it"
    for number, pause in enumerate((*_PAUSES, None), start=1):
        if _fetch_from_any(mirrors, target, expected, connections, faults):
            return
        offline = all(isinstance(fault, Unreachable) for fault in faults.values())
        if offline and number >= _ROUNDS_OFFLINE and unfinished.progress == progress_before:
            advice = "Check the network, or name a file on this machine in params.yaml"
            break
        if not mirrors or pause is None:
            break
        say(f"{what}: {'; '.join(map(str, faults.values()))}; trying again in {pause:g} s")
        time.sleep(pause)
    too_large = [fault for fault in faults.values() if isinstance(fault, StorageError)]
    if too_large and len(too_large) == len(faults):
        raise too_large[0]
    # A query may contain a secret key.
    shown = {url: urlsplit(url)._replace(query="", fragment="").geturl() for url in faults}
    listed = "; ".join(f"{shown[url]}: {fault}" for url, fault in faults.items())
    raise SourceError(f"{what}: {listed}. {advice}")


def _is_finished(target: Path, expected: Expected) -> bool:
    """Whether `target` is the expected file. Without a checksum the server is asked again."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        return False
    if expected.sha256 and expected.fault(target) is None:
        return True
    target.replace(files.partial_path(target))
    return False


def _fetch_from_any(
    mirrors: list[str], target: Path, expected: Expected, connections: int, faults: Faults
) -> bool:
    """Whether one of `mirrors` gave the file. Mirrors that never will are taken out of the list."""
    for url in tuple(mirrors):
        try:
            _fetch_from(url, target, expected, connections)
            return True
        except (Passing, Final, StorageError) as fault:
            faults[url] = fault
            if not isinstance(fault, Passing):
                mirrors.remove(url)
    return False


def _fetch_from(url: str, target: Path, expected: Expected, connections: int) -> None:
    unfinished = Unfinished(target)
    with files.storage_errors(target):
        resumed = _download(url, unfinished, expected, connections)
        fault = expected.fault(unfinished.path)
        if fault:
            # A resumed file may mix the bytes of two versions, so that a new start can help.
            unfinished.remove()
            raise (Passing if resumed else Final)(fault)
        unfinished.path.replace(target)


def _download(url: str, unfinished: Unfinished, expected: Expected, connections: int) -> bool:
    """Fill the partial file. Connects again as long as every connection brings new bytes.

    Returns:
        Whether the bytes may be of more than one version of the file.
    """
    resumed = changed_before = False
    pace = Pace()
    while True:
        before, begun = unfinished.progress, time.monotonic()
        try:
            return _connect_once(url, unfinished, expected, connections) or resumed
        except Stale:
            unfinished.remove()
            if changed_before:
                raise Passing("the file differs each time") from None
            say(f"{unfinished.name}: the file has changed on the server; starting again")
            connections = 1  # Several hosts behind one name may have different versions.
            changed_before = True
        except NoParts:
            connections = 1
        except Passing as fault:
            if unfinished.progress <= before:
                raise
            say(f"{unfinished.name}: {fault}; continuing after {unfinished.progress} bytes")
            resumed = True
            time.sleep(_PAUSES[0])
            pace.add(unfinished.progress - before, time.monotonic() - begun)


def _connect_once(url: str, unfinished: Unfinished, expected: Expected, connections: int) -> bool:
    """Fetch the rest of the file with one connection, or with several at once.

    Returns:
        Whether bytes of the file were here before.
    """
    known = unfinished.origin
    start = unfinished.resume_point(url, expected.sha256 is not None)
    validator = known.validator if known and known.url == url else None
    try:
        response = ask(url, Span(start), validator)
    except Complete:
        return True
    with response:
        is_part = response.status == 206
        start, answer = (start, answered_range(response.headers)) if is_part else (0, (0, None))
        other_version = is_part and changed(response.headers, validator)
        if other_version or answer is None or answer[0] != start:
            raise Stale if start else Final("the server sends another range than the wanted one")
        total = answer[1]  # a part may end before the file
        if total is None and response.length is not None:
            total = start + response.length
        if expected.size is not None and total not in (None, expected.size):
            raise Final(f"it has {total} bytes, expected {expected.size}")
        origin = Origin(url, version(response.headers))
        if not (connections > 1 and total and _serves_parts(response, total, origin, expected)):
            _save(response, unfinished, origin, start, total, expected.size)
            return start > 0
    return _fetch_in_pieces(unfinished, origin, total, expected, connections)


def _serves_parts(response: HTTPResponse, total: int, origin: Origin, expected: Expected) -> bool:
    """Whether the host serves parts, the file is large, and a change of the file would show."""
    serves_parts = response.status == 206 or response.headers.get("Accept-Ranges") == "bytes"
    change_shows = origin.validator is not None or expected.sha256 is not None
    return serves_parts and change_shows and total >= 2 * parallel.PIECE


def _fetch_in_pieces(
    unfinished: Unfinished, origin: Origin, total: int, expected: Expected, connections: int
) -> bool:
    """Fetch the missing pieces over several connections. Returns whether some were here before."""
    pieces = unfinished.pieces(origin, total, expected.sha256 is not None)
    resumed = bool(pieces.done)
    require_space(unfinished.path.parent, pieces.bytes_missing, unfinished.name)
    unfinished.note(origin, pieces)
    parallel.fetch_pieces(
        origin.url,
        unfinished.path,
        pieces,
        origin.validator,
        connections,
        lambda pieces: unfinished.note(origin, pieces),
    )
    return resumed


def _save(
    response: HTTPResponse,
    unfinished: Unfinished,
    origin: Origin,
    start: int,
    total: int | None,
    limit: int | None,
) -> None:
    """Write the body from byte `start` on. A body that is too short is a `Passing` fault."""
    partial = unfinished.path
    require_space(partial.parent, (total or start) - start, unfinished.name)
    with os.fdopen(files.open_partial(partial), "r+b") as stream:
        stream.truncate(start)
        stream.seek(start)
        unfinished.note(origin)
        steps = None if total is None else -(-(total - start) // _MEBIBYTE)
        limits = [count for count in (total, limit) if count is not None]
        for _ in track(_copy(response, stream), f"{unfinished.name} (MiB)", total=steps):
            if total is None:
                _require_mebibyte(partial)
            if limits and stream.tell() > min(limits):
                files.remove(partial)
                raise Final(f"it has more than the expected {min(limits)} bytes")
    if total is not None and unfinished.size < total:
        raise Passing(f"connection cut after {unfinished.size} of {total} bytes")


def _require_mebibyte(partial: Path) -> None:
    """Require space for the next mebibyte; if there is none, leave the disk to the next mirror."""
    try:
        require_space(partial.parent, _MEBIBYTE, partial.name.removesuffix(".partial"))
    except StorageError:
        files.remove(partial)
        raise


def _copy(response: HTTPResponse, stream: BinaryIO) -> Iterator[None]:
    """Write the body to `stream`; yield after every mebibyte. The bytes before a cut are kept."""
    written = 0
    for block in blocks(response):
        stream.write(block)
        written += len(block)
        if written >= _MEBIBYTE:
            written -= _MEBIBYTE
            yield
    yield
