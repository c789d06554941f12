"""Download one large file over several connections, piece by piece.

The pieces are written where they belong in the partial file; which of them are whole is noted
beside it, so that an interrupted download loses no more than the pieces that were under way.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from manymatch.fetching.http import (
    Complete,
    Final,
    NoParts,
    Passing,
    Span,
    Stale,
    answered_range,
    ask,
    blocks,
    changed,
)
from manymatch.system.progress import track

PIECE = 16 * 2**20
"""Bytes; a file of fewer than two pieces comes over one connection."""


@dataclass
class Pieces:
    """The pieces of a file of `total` bytes, and which are whole."""

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


class _Given(Exception):
    """The piece was given up because of a fault elsewhere."""


def fetch_pieces(
    url: str,
    partial: Path,
    pieces: Pieces,
    validator: str | None,
    connections: int,
    note: Callable[[Pieces], None],
) -> None:
    """Fill the missing pieces of `partial`; `note` is told each time one is whole.

    A host that does not serve so many connections at once is asked over fewer. The first fault is
    raised when a round brings nothing, or at once where another attempt would meet it again.
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
    """Ask for all missing pieces; after a fault no more are begun, and it is returned."""
    halt, stop = threading.Event(), threading.Event()

    def work(number: int) -> int:
        if halt.is_set():
            raise _Given
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
                    if not isinstance(error, Passing | _Given):
                        stop.set()
        finally:
            halt.set()
            stop.set()
    return _gravest(faults)


def _gravest(faults: list[BaseException]) -> BaseException | None:
    """The first that another attempt would meet again, else the first of all."""
    own = [fault for fault in faults if not isinstance(fault, _Given)]
    return next((fault for fault in own if not isinstance(fault, Passing)), own[0] if own else None)


@contextlib.contextmanager
def _opened(partial: Path, total: int) -> Iterator[int]:
    file = os.open(partial, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(file, total)
        yield file
    finally:
        os.close(file)


def _fetch_piece(
    url: str, file: int, span: Span, validator: str | None, stop: threading.Event
) -> None:
    """The bytes of `span`, connecting again as long as each connection brought some."""
    assert span.end is not None
    at = span.start
    while at < span.end:
        begun = at
        try:
            for block in _part(url, Span(at, span.end), validator):
                if stop.is_set():
                    raise _Given
                os.pwrite(file, block, at)
                at += len(block)
        except Passing:
            if at == begun:
                raise
        else:
            if at == begun:
                raise Passing("connection cut before a byte came")


def _part(url: str, span: Span, validator: str | None) -> Iterator[bytes]:
    """What one connection gives of `span`, never more."""
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
            raise Final("it answers with a range that nobody asked for")
        left = (span.end or 0) - span.start
        for block in blocks(response):
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return
