"""Files that threads write, hash and put on the disk while the next bytes are made."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from manymatch.shards.tar import Bytes

_PIECE = 4 * 2**20  # of bytes: many small writes would wait for the system and for the threads
_PIECES = 3  # waiting to be written, however slow the disk is; few enough for the CPU's cache
_FILES = 4  # on their way to the disk, and open until they are there


class Disk:
    """Two threads: one hashes and writes, the other waits for the disk, which takes one file while
    the next is written. An error in them is raised by whoever writes on, waits for a digest or
    closes."""

    def __init__(self) -> None:
        self._writing, self._syncing = _Turns(_PIECES), _Turns(_FILES)

    def file(self, path: Path) -> WrittenAside:
        """A new file; files are written one after another."""
        return WrittenAside(path, self._writing, self._syncing)

    def close(self) -> None:
        """Wait until everything is done."""
        try:
            self._writing.close()
        finally:
            self._syncing.close()


class _Turns:
    """A thread that does one task after another; whoever gives it more than `room` waits."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._thread = ThreadPoolExecutor(1)
        self._waiting: deque[Future[Any]] = deque()

    def later(self, task: Callable[[], Any]) -> Future[Any]:
        while len(self._waiting) >= self._room:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(task))
        return self._waiting[-1]

    def close(self) -> None:
        self._thread.shutdown()
        for task in self._waiting:
            task.result()


class WrittenAside:
    """What `write` and `close` have taken is in the file, and on the disk, when `sha256` returns;
    see `Disk.file`."""

    def __init__(self, path: Path, writing: _Turns, syncing: _Turns) -> None:
        self._file = path.open("wb")
        self._writing, self._syncing = writing, syncing
        self._digest = hashlib.sha256()
        self._piece: list[Bytes] = []
        self._room = _PIECE

    def write(self, data: Bytes) -> None:
        self._piece.append(data)
        self._room -= len(data)
        if self._room <= 0:
            self._pass_on()

    def close(self) -> None:
        self._pass_on()
        self._written = self._writing.later(self._finish)

    def sha256(self) -> str:
        """The hexadecimal digest of a closed file."""
        self._written.result().result()
        return self._digest.hexdigest()

    def _pass_on(self) -> None:
        piece, self._piece, self._room = self._piece, [], _PIECE
        self._writing.later(lambda: self._put(piece))

    def _put(self, piece: list[Bytes]) -> None:
        # Joined, as a thread that lets others run, at every hash and write, waits to go on.
        data = b"".join(piece)
        self._digest.update(data)
        self._file.write(data)

    def _finish(self) -> Future[Any]:
        """Nothing is left to write; the answer comes when all is on the disk."""
        try:
            self._file.flush()
        except OSError:
            self._file.close()
            raise
        return self._syncing.later(self._sync)

    def _sync(self) -> None:
        with self._file:
            os.fsync(self._file.fileno())
