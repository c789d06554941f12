"""Lock files: two processes never write the same output at the same time.

The lock is the operating system's, so that it ends with its process, even after `kill -9`. The
holder of the lock writes a note about itself to the lock file, for processes that wait.
"""

import contextlib
import errno
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from manymatch.util.errors import StorageError
from manymatch.util.files import beside, storage_error
from manymatch.util.progress import say

_SECONDS_BETWEEN_ATTEMPTS, _SHORT = 0.1, 0.2
"""Seconds between two attempts, and to wait without a word."""
_PATIENCE = 3.0
"""Seconds after which a lock without a known holder is told, and a lock file that cannot be created
is a fault."""


def lock_path(output: Path) -> Path:
    """The lock file of `output`: beside it, with a name that git and DVC ignore."""
    return beside(output, ".lock.partial")


@contextlib.contextmanager
def locked(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock file `path`, which protects `what`, while the block runs.

    If another process holds the lock, this function waits, and one line names that process. The
    lock file is removed at the end. A killed process leaves its lock file to the next holder.

    Args:
        path: the lock file. Its folder is created, and removed at the end if the folder is empty.
        what: the file or folder that messages name.

    Raises:
        StorageError: the lock file cannot be created or written.
    """
    # Without this setting, filelock would write its own text to the file on some file systems.
    lock = FileLock(path, fallback_to_soft=False)
    made = [folder for folder in path.parents if not folder.exists()]
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    try:
        _acquire(lock, path, what)
        since = datetime.now().isoformat(sep=" ", timespec="seconds")
        holder = f"process {os.getpid()} on {platform.node()} ({command}), which began at {since}"
        path.write_text(holder, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        _end(lock, path if lock.is_locked else None, made)
        raise storage_error(error, path) from error
    try:
        yield
    finally:
        _end(lock, path, made)


def _end(lock: FileLock, path: Path | None, made: Sequence[Path]) -> None:
    """Release `lock`, and remove its file and the folders `made` up to the first that holds
    something. `path` is None if another process may hold the lock, whose file then stays."""
    if path:
        # filelock opens the file anew if it was removed before the lock on it was acquired.
        with contextlib.suppress(OSError):
            path.unlink()
    lock.release()
    with contextlib.suppress(OSError):
        for folder in made:
            folder.rmdir()


def _acquire(lock: FileLock, path: Path, what: Path) -> None:
    """Acquire `lock`.

    On some file systems (/proc, some network disks) a file cannot be created although its folder is
    there: filelock then says that another process holds the lock.
    """
    named, seen = "", (began := time.monotonic())
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        holder = ""
        try:
            lock.acquire(blocking=False)
            return
        except Timeout:
            with contextlib.suppress(FileNotFoundError):
                holder, seen = path.read_text(encoding="utf-8"), time.monotonic()
        except FileNotFoundError:
            pass  # the last holder has removed the folder
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            say(f"{path}: this file system has no locks. Do not run this command twice at once")
            return
        now = time.monotonic()
        if now - seen > _PATIENCE:
            raise StorageError(
                f"{path}: the lock file cannot be created. Choose a folder of another disk"
            )
        text = holder or f"the holder of {path}"
        if text != named and now - began > (_SHORT if holder else _PATIENCE):
            named = text
            say(f"{what}: waiting for {named}")
        time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
