"""Downloading one large file over several connections, piece by piece.

Every piece is written at its position in the partial file. A note beside the file lists the whole
pieces, so that an interrupted download loses only the pieces that were unfinished.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from manymatch.datasets.fetching.http import (
    Complete,
    Final,
    NoParts,
    Pace,
    Passing,
    Span,
    Stale,
    answered_range,
    ask,
    blocks,
    changed,
)
from manymatch.util.files import open_partial
from manymatch.util.progress import track

_PAUSE = 0.1
"""Seconds before a cut connection is replaced."""
PIECE = 16 * 2**20
"""Bytes. A file of fewer than two pieces is fetched over one connection."""


@dataclass
class Pieces:
    """The pieces of a file of `total` bytes; `done` has the numbers of the whole pieces."""

    total: int
    done: set[int] = field(default_factory=set)
    size: int = PIECE

    def span(self, number: int) -> Span:
        return Span(number * self.size, min(self.total, (number + 1) * self.size))

    @property
    def missing(self) -> list[int]:
        return [number for number in range(-(-self.total // self.size)) if number not in self.done]

    @property
    def bytes_missing(self) -> int:
        spans = (self.span(number) for number in self.missing)
        return sum((span.end or 0) - span.start for span in spans)


class _Abandoned(Exception):
    """A piece was abandoned because of a fault in another one."""


def fetch_pieces(
    url: str,
    partial: Path,
    pieces: Pieces,
    validator: str | None,
    connections: int,
    note: Callable[[Pieces], None],
) -> None:
    """Fetch the missing pieces of `partial`; `note` is called whenever a piece is whole.

    If the host refuses so many connections, fewer are used. A fault is raised when a round brings
    no piece, or at once if another attempt would have the same fault.
    """
    with _opened(partial, pieces.total) as file:
        while before := len(pieces.missing):
            fault = _round(url, file, pieces, validator, connections, note)
            if fault and (len(pieces.missing) == before or not isinstance(fault, Passing)):
                raise fault
            connections = max(1, connections // 2) if fault else connections


def _round(
    url: str,
    file: int,
    pieces: Pieces,
    validator: str | None,
    connections: int,
    note: Callable[[Pieces], None],
) -> BaseException | None:
    """Fetch all missing pieces. After a fault no new piece is begun, and the fault is returned."""
    halt, stop = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if halt.is_set():
            raise _Abandoned
        _fetch_piece(url, file, pieces.span(number), validator, stop)
        return number

    faults: list[BaseException] = []
    with ThreadPoolExecutor(connections) as pool:
        try:
            missing = pieces.missing
            tasks = as_completed([pool.submit(work, number) for number in missing])
            for task in track(tasks, f"pieces of {pieces.size / 2**20:g} MiB", len(missing)):
                error = task.exception()
                if error is None:
                    pieces.done.add(task.result())
                    note(pieces)
                else:
                    faults.append(error)
                    halt.set()
                    if not isinstance(error, Passing | _Abandoned):
                        stop.set()
        finally:
            halt.set()
            stop.set()
    return _gravest(faults)


def _gravest(faults: list[BaseException]) -> BaseException | None:
    """The first fault that is not `Passing`, else the first of all."""
    first_hand = [fault for fault in faults if not isinstance(fault, _Abandoned)]
    return next(
        (fault for fault in first_hand if not isinstance(fault, Passing)),
        first_hand[0] if first_hand else None,
    )


@contextlib.contextmanager
def _opened(partial: Path, total: int) -> Iterator[int]:
    file = open_partial(partial)
    try:
        os.ftruncate(file, total)
        yield file
    finally:
        os.close(file)


def _fetch_piece(
    url: str, file: int, span: Span, validator: str | None, stop: threading.Event
) -> None:
    """Fetch the bytes of `span`. Connects again as long as every connection brings bytes."""
    assert span.end is not None
    at, pace = span.start, Pace()
    while at < span.end:
        begun, seconds = at, time.monotonic()
        try:
            for block in _part(url, Span(at, span.end), validator):
                if stop.is_set():
                    raise _Abandoned
                os.pwrite(file, block, at)
                at += len(block)
        except Passing:
            if at == begun:
                raise
        else:
            if at == begun:
                raise Passing("connection cut before the first byte")
        if at < span.end:
            stop.wait(_PAUSE)
            pace.add(at - begun, time.monotonic() - seconds)


def _part(url: str, span: Span, validator: str | None) -> Iterator[bytes]:
    """The bytes of `span` that one connection gives, and no bytes after `span`."""
    try:
        response = ask(url, span, validator)
    except Complete:
        raise Stale from None
    with response:
        answer = answered_range(response.headers)
        if changed(response.headers, validator):
            raise Stale
        if response.status != 206:
            raise NoParts
        if answer is None or answer[0] != span.start:
            raise Final("the server sends another range than the wanted one")
        left = (span.end or 0) - span.start
        for block in blocks(response):
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return
