"""Lock files: two processes never write the same output at the same time.

The lock is the operating system's, so that it ends with its process, even after `kill -9`. The
holder of the lock writes a note about itself to the lock file, for processes that wait.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from io import FileIO
from os.path import samestat
from pathlib import Path

from filelock import FileLock, Timeout

from manymatch.util.errors import StorageError
from manymatch.util.files import beside, storage_error
from manymatch.util.progress import say

_SECONDS_BETWEEN_ATTEMPTS = 0.1
_SHORT = 0.2
"""Seconds that are waited for without a word."""
_PATIENCE = 3.0
"""Seconds after which a lock without a known holder is told, and a lock file that cannot be created
is a fault."""


@dataclass(frozen=True)
class _Holder:
    """The content of a lock file: the process that holds the lock, or that was killed."""

    pid: int
    host: str
    command: str
    since: str
    """Local time at which the process got the lock."""
    work: str
    finished: bool = False
    """Whether the work under the lock ended without an error."""

    def __str__(self) -> str:
        host = "" if self.host == platform.node() else f" on {self.host}"
        return f"process {self.pid}{host} ({self.command}), which began at {self.since}"


def lock_path(output: Path) -> Path:
    """The lock file of `output`: beside it, with a name that git and DVC ignore."""
    return beside(output, ".lock.partial")


@contextlib.contextmanager
def locked(path: Path, what: Path, work: str = "") -> Iterator[bool]:
    """Hold the lock file `path`, which protects `what`, while the block runs.

    If another process holds the lock, this function waits, and one line names that process. The
    lock file is removed at the end. A killed process leaves its lock file to the next holder.

    Args:
        path: the lock file; its folder is created, and removed at the end if nothing is in it.
        what: the file or folder that messages name.
        work: identifies the work of the block. Equal texts mean equal results.

    Yields:
        Whether the last process that held the lock while this function waited has finished the same
        `work` ("" is never the same).

    Raises:
        StorageError: the lock file cannot be created or written.
    """
    # Without this setting, filelock would write its own text to the file on some file systems.
    lock = FileLock(path, fallback_to_soft=False)
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        before = _acquired(lock, path, what)
        holder = _described(work)
        _write(path, holder)
    except OSError as error:
        lock.release()
        raise storage_error(error, path) from error
    try:
        yield bool(work) and before is not None and before.finished and before.work == work
        with contextlib.suppress(OSError):  # then a process that waits does the work again
            _write(path, replace(holder, finished=True))
    finally:
        # filelock opens the file anew if it was removed before the lock on it was acquired.
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()
        with contextlib.suppress(OSError):  # of a folder that holds something
            for folder in made:
                folder.rmdir()


def _acquired(lock: FileLock, path: Path, what: Path) -> _Holder | None:
    """Acquire `lock`; returns the last holder that was waited for, as it ended, or None.

    On some file systems (/proc, some network disks) a file cannot be created although its folder is
    there: filelock then says that another process holds the lock.
    """
    named, began = "", time.monotonic()
    seen = began
    with contextlib.ExitStack() as stack:
        note: FileIO | None = None
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(blocking=False)
                return None if note is None else _read(note)
            except Timeout:
                with contextlib.suppress(FileNotFoundError):
                    present = path.stat()
                    seen = time.monotonic()
                    if note is None or not samestat(os.fstat(note.fileno()), present):
                        # The open file shows how its holder ended, even after the file is removed.
                        note = stack.enter_context(path.open("rb", buffering=0))
            except FileNotFoundError:
                pass  # the last holder has removed the folder
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise
                say(f"{path}: this file system has no locks. Do not run this command twice at once")
                return None
            now = time.monotonic()
            if now - seen > _PATIENCE:
                raise StorageError(
                    f"{path}: the lock file cannot be created. Choose a folder of another disk"
                )
            holder = None if note is None else _read(note)
            text = f"the holder of {path}" if holder is None else str(holder)
            if text != named and now - began > (_PATIENCE if holder is None else _SHORT):
                named = text
                say(f"{what}: waiting for {named}")
            time.sleep(_SECONDS_BETWEEN_ATTEMPTS)


def _described(work: str) -> _Holder:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    since = datetime.now().isoformat(sep=" ", timespec="seconds")
    return _Holder(os.getpid(), platform.node(), command, since, work)


def _write(path: Path, holder: _Holder) -> None:
    path.write_text(json.dumps(asdict(holder)), encoding="utf-8")


def _read(note: FileIO) -> _Holder | None:
    """The holder in an open lock file; None if the holder has not written its note yet."""
    note.seek(0)
    try:
        return _Holder(**json.loads(note.read()))
    except (ValueError, TypeError):
        return None
