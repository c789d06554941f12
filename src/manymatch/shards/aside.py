"""Files that a thread writes, hashes and puts on the disk while the next bytes are made."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

_PIECE = 2**20  # many small writes would wait for the system, and for the thread
_WAITING = 32  # pieces: so much memory at most, however slow the disk is


class Disk:
    """The thread, and what it has yet to do. An error in it is raised by whoever writes on, waits
    for a digest or closes."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()

    def file(self, path: Path) -> WrittenAside:
        """A new file; files are written one after another."""
        return WrittenAside(path, self._later)

    def close(self) -> None:
        """Wait until everything is done."""
        self._thread.shutdown()
        for task in self._waiting:
            task.result()

    def _later(self, task: Callable[[], None]) -> Future[None]:
        while len(self._waiting) >= _WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(task))
        return self._waiting[-1]


class WrittenAside:
    """What `write` and `close` have taken is in the file, and on the disk, when `sha256` returns;
    see `Disk.file`."""

    def __init__(self, path: Path, later: Callable[[Callable[[], None]], Future[None]]) -> None:
        self._file = path.open("wb", buffering=0)
        self._later = later
        self._digest = hashlib.sha256()
        self._piece = bytearray()

    def write(self, data: bytes) -> int:
        self._piece += data
        if len(self._piece) >= _PIECE:
            self._pass_on()
        return len(data)

    def close(self) -> None:
        self._pass_on()
        self._done = self._later(self._to_disk)

    def sha256(self) -> str:
        """The hexadecimal digest of a closed file."""
        self._done.result()
        return self._digest.hexdigest()

    def _pass_on(self) -> None:
        piece, self._piece = self._piece, bytearray()
        self._later(lambda: self._put(piece))

    def _put(self, piece: bytearray) -> None:
        self._digest.update(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _to_disk(self) -> None:
        with self._file:
            os.fsync(self._file.fileno())
