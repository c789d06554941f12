"""Lock files: two processes never do the same work at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from manymatch.system.progress import say


@contextlib.contextmanager
def locked(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock file `path`. Print the line `waiting` if another process holds the lock."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(waiting)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
