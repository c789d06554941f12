"""Download one file over HTTP: from the first mirror that has it, going on where it was cut off.

Beside the file `NAME` lie, while it is fetched, `NAME.partial` with the bytes so far and
`NAME.json` with what they are bytes of. Nothing stands under `NAME` before it is complete and has
the expected size and checksum. Large files come over several connections (`parallel`) from hosts
that give parts of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from http.client import HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit, urlunsplit

from manymatch.fetching import connections as parallel
from manymatch.fetching.connections import Pieces, fetch_pieces
from manymatch.fetching.disk import require_space
from manymatch.fetching.http import (
    Complete,
    Final,
    NoParts,
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
from manymatch.system import files
from manymatch.system.errors import ManyMatchError, SourceError, StorageError
from manymatch.system.progress import say, track

_PAUSES: tuple[float, ...] = (1, 2, 4, 8, 16)
"""Seconds between the rounds over the mirrors."""
_ROUNDS_OFFLINE = 3
"""Rounds after which no more is tried where no host can be reached and nothing came."""
_MEBIBYTE = 2**20
Faults = dict[str, Passing | Final]
"""The last fault of each mirror."""
Check = Callable[[Path], None]
"""Reads a file; an error of ours, in one line, if it is not what is wanted or not whole."""


@dataclass(frozen=True)
class Expected:
    """What is known of a file beforehand. `check` is asked where there is no checksum."""

    size: int | None = None
    sha256: str | None = None
    check: Check | None = None

    def fault(self, path: Path) -> str | None:
        """How the file at `path` differs, in words."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"it has {size} bytes, expected {self.size}"
        if self.sha256 is None:
            return _refusal(self.check, path) if self.check else None
        found = files.sha256(path)
        return None if found == self.sha256 else f"its sha256 is {found}, expected {self.sha256}"


def _refusal(check: Check, path: Path) -> str | None:
    try:
        check(path)
    except StorageError:
        raise
    except ManyMatchError as error:
        return str(error).replace(str(path), path.name.removesuffix(".partial"))
    return None


@dataclass(frozen=True)
class _Origin:
    """What the bytes of a partial download are bytes of."""

    url: str
    validator: str | None
    """The file's version in the server's words: a strong ETag or a date."""
    pieces: tuple[int, int, tuple[int, ...]] | None = None
    """Of a download in pieces: bytes of the file, bytes of a piece, the whole pieces' numbers. Of
    the others the partial file has only the places."""


def fetch(
    urls: Sequence[str], target: Path, expected: Expected, what: str, connections: int = 1
) -> None:
    """Download `target` from the first of `urls` that gives it whole, over so many `connections`
    at once as its host allows.

    Raises `SourceError` with every mirror's fault, `StorageError` where the disk is too small.
    """
    if _finished(target, expected):
        return
    left, faults, begun = list(urls), Faults(), _progress(target)
    advice = "correct the source or name a mirror of it"
    for number, pause in enumerate((*_PAUSES, None), start=1):
        if _fetched_from_any(left, target, expected, connections, faults):
            return
        if _is_offline(faults) and number >= _ROUNDS_OFFLINE and _progress(target) == begun:
            advice = "is there a network? else name a file on this machine in params.yaml"
            break
        if not left or pause is None:
            break
        say(f"{what}: {'; '.join(map(str, faults.values()))}; trying again in {pause:g} s")
        time.sleep(pause)
    raise SourceError(f"{what}: {_listed(faults)}; {advice}")


def _is_offline(faults: Faults) -> bool:
    return all(isinstance(fault, Unreachable) for fault in faults.values())


def _fetched_from_any(
    left: list[str], target: Path, expected: Expected, connections: int, faults: Faults
) -> bool:
    """Whether one of the mirrors in `left` gave the file; those that never will are taken out."""
    for url in tuple(left):
        try:
            _fetch_from(url, target, expected, connections)
            return True
        except (Passing, Final) as fault:
            faults[url] = fault
            if isinstance(fault, Final):
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


def _fetch_from(url: str, target: Path, expected: Expected, connections: int) -> None:
    partial = files.partial_path(target)
    with files.storage_errors(target):
        resumed = _download(url, target, expected, connections)
        fault = expected.fault(partial)
        if fault:
            # Bytes of two versions may have met in a resumed file: it deserves a fresh start.
            _forget(target)
            raise (Passing if resumed else Final)(fault)
        partial.replace(target)


def _download(url: str, target: Path, expected: Expected, connections: int) -> bool:
    """Fill the partial file, connecting again as long as each connection brought it further.

    Returns whether its bytes may be of more than one version of the file.
    """
    resumed = changed_before = False
    while True:
        before = _progress(target)
        try:
            return _connect_once(url, target, expected, connections) or resumed
        except Stale:
            _forget(target)
            if changed_before:
                raise Passing("it is another file each time") from None
            say(f"{target.name}: it has changed on the server; starting again")
            connections = 1  # Hosts behind one name may each have their own version.
            changed_before = True
        except NoParts:
            connections = 1
        except Passing as fault:
            if _progress(target) <= before:
                raise
            say(f"{target.name}: {fault}; going on after {_progress(target)} bytes")
            resumed = True
            time.sleep(_PAUSES[0])


def _connect_once(url: str, target: Path, expected: Expected, connections: int) -> bool:
    """One connection, or several at once, that give the rest of the file. Returns whether there was
    a beginning."""
    known = _read_origin(target)
    start = _resume_point(url, target, known, expected)
    validator = known.validator if known and known.url == url else None
    try:
        response = ask(url, Span(start), validator)
    except Complete:
        return True
    with response:
        if response.status != 206:
            start = 0
        elif not _answers(response, start) or changed(response.headers, validator):
            raise Stale if start else Final("it answers with a range that nobody asked for")
        total = _total(response, start)
        if expected.size is not None and total not in (None, expected.size):
            raise Final(f"it has {total} bytes, expected {expected.size}")
        origin = _Origin(url, version(response.headers))
        if not (connections > 1 and total and _in_pieces(response, total, origin, expected)):
            _save(response, target, origin, start, total, expected.size)
            return start > 0
    return _fetch_in_pieces(target, origin, total, expected, connections)


def _in_pieces(response: HTTPResponse, total: int, origin: _Origin, expected: Expected) -> bool:
    """Whether the host gives parts of a file that is worth it, and it can be told of what."""
    gives_parts = response.status == 206 or response.headers.get("Accept-Ranges") == "bytes"
    told = origin.validator is not None or expected.sha256 is not None
    return gives_parts and told and total >= 2 * parallel.PIECE


def _fetch_in_pieces(
    target: Path, origin: _Origin, total: int, expected: Expected, connections: int
) -> bool:
    """Fetch what is missing over several connections. Returns whether there was something."""
    partial = files.partial_path(target)
    pieces = _pieces_here(target, origin, total, expected)
    resumed = bool(pieces.done)
    require_space(partial.parent, pieces.bytes_missing, target.name)

    def note(pieces: Pieces) -> None:
        kept = (pieces.total, pieces.size, tuple(sorted(pieces.done)))
        files.write_json(_origin_path(target), asdict(replace(origin, pieces=kept)))

    note(pieces)
    fetch_pieces(origin.url, partial, pieces, origin.validator, connections, note)
    return resumed


def _pieces_here(target: Path, origin: _Origin, total: int, expected: Expected) -> Pieces:
    """The pieces, with those whole that the partial file has already."""
    pieces, known = Pieces(total, size=parallel.PIECE), _read_origin(target)
    here = _size(files.partial_path(target))
    same = known and origin.validator and known == replace(origin, pieces=known.pieces)
    if not (same or expected.sha256):
        return pieces
    if known is None or known.pieces is None:
        pieces.done.update(range(here // pieces.size))
    elif known.pieces[:2] == (here, pieces.size) == (total, pieces.size):
        pieces.done.update(known.pieces[2])
    return pieces


def _answers(response: HTTPResponse, start: int) -> bool:
    answer = answered_range(response.headers)
    return answer is not None and answer[0] == start


def _save(
    response: HTTPResponse,
    target: Path,
    origin: _Origin,
    start: int,
    total: int | None,
    limit: int | None,
) -> None:
    """Append the body after byte `start`; a body shorter than promised is a passing fault."""
    partial = files.partial_path(target)
    require_space(partial.parent, (total or start) - start, target.name)
    with partial.open("ab") as stream:
        stream.truncate(start)
        files.write_json(_origin_path(target), asdict(origin))
        steps = None if total is None else -(-(total - start) // _MEBIBYTE)
        for _ in track(_copy(response, stream), f"{target.name} (MiB)", total=steps):
            if total is None:
                require_space(partial.parent, _MEBIBYTE, target.name)
            if limit is not None and stream.tell() > limit:
                files.remove(partial)
                raise Final(f"it has more than the expected {limit} bytes")
    if total is not None and _size(partial) < total:
        raise Passing(f"connection cut after {_size(partial)} of {total} bytes")


def _copy(response: HTTPResponse, stream: BinaryIO) -> Iterator[None]:
    """Write the body to `stream`; yield once a mebibyte. What came before a cut is kept."""
    written = 0
    for block in blocks(response):
        stream.write(block)
        written += len(block)
        if written >= _MEBIBYTE:
            written -= _MEBIBYTE
            yield
    yield


def _resume_point(url: str, target: Path, known: _Origin | None, expected: Expected) -> int:
    """From which byte to ask: 0 unless the bytes that are here can be told to belong."""
    same_version = known is not None and known.url == url and known.validator is not None
    return _beginning(target, known) if same_version or expected.sha256 else 0


def _beginning(target: Path, known: _Origin | None) -> int:
    """Bytes from the file's beginning that the partial file has without a gap."""
    if known is None or known.pieces is None:
        return _size(files.partial_path(target))
    total, size, done = known.pieces
    whole = next(number for number in range(len(done) + 1) if number not in done)
    return min(_size(files.partial_path(target)), total, whole * size)


def _progress(target: Path) -> int:
    """Bytes that the partial file has, wherever they stand."""
    known = _read_origin(target)
    if known is None or known.pieces is None:
        return _size(files.partial_path(target))
    return len(known.pieces[2]) * known.pieces[1]


def _forget(target: Path) -> None:
    files.remove(files.partial_path(target))
    files.remove(_origin_path(target))


def _total(response: HTTPResponse, start: int) -> int | None:
    """Bytes of the whole file, if the server says so."""
    return None if response.length is None else start + response.length


def _read_origin(target: Path) -> _Origin | None:
    """None where nothing, or nothing sensible, was noted: then the download starts afresh."""
    try:
        note = json.loads(_origin_path(target).read_text(encoding="utf-8"))
        if note.get("pieces") is not None:
            total, size, done = note["pieces"]
            note["pieces"] = int(total), int(size), tuple(map(int, done))
        return _Origin(**note)
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _origin_path(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _listed(faults: Faults) -> str:
    return "; ".join(f"{_shown(url)}: {fault}" for url, fault in faults.items())


def _shown(url: str) -> str:
    """Without the query, which may hold a key that is nobody's business."""
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))
