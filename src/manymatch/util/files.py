"""Writing files completely or not at all: under a temporary name, then moved into place."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymatch.util.errors import StorageError
from manymatch.util.regular_file import open_regular, resolved

_FULL = "no space left while writing. Free some space and run the command again"
_DAMAGED = "the disk reports an error. Check the disk, and the connection to a network disk"
_REFUSED = "no permission. Change the owner or the permissions of the file and of its folders"
_OCCUPIED = "exists already. Remove the file or dangling link, or choose another folder"
_TOO_MANY = "too many files are open. Raise the limit with 'ulimit -n 4096'"
_FAULTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FULL),
    **dict.fromkeys((errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE), _DAMAGED),
    **dict.fromkeys((errno.EACCES, errno.EPERM), _REFUSED),
    **dict.fromkeys((errno.EEXIST, errno.ENOTEMPTY), _OCCUPIED),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _TOO_MANY),
    errno.EROFS: "the disk is read-only. Mount the disk for writing, or choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder. Move the file away",
    errno.EISDIR: "a folder, where a file is expected. Move the folder away",
    errno.ELOOP: "the links lead in a circle. Remove one of the links",
    errno.ENAMETOOLONG: "the name is too long. Choose a shorter name",
    errno.EBUSY: "in use, for example as a mount point. Mount a folder above, or choose another",
    errno.EXDEV: "the move leads to another disk. Mount a folder above, or choose another",
}
"""What each fault of the file system means for a user, and how to correct it."""


_FAULT_IN_TEXT = re.compile(r"(?:errno = |os error )(\d+)|\d+ requested and \d+ written")
"""The number of a fault in the text of HDF5 or a Rust library, or NumPy's text of a full disk."""


def fault_number(error: OSError) -> int | None:
    """The number of a fault of the file system, which some libraries write in the text alone."""
    match = None if error.errno else _FAULT_IN_TEXT.search(str(error))
    return int(match[1] or errno.ENOSPC) if match else error.errno


def storage_error(error: OSError, target: Path | None = None) -> StorageError:
    """The error of one line for a fault of the file system that happened while `target` was
    written."""
    fault = _FAULTS.get(fault_number(error) or 0) or f"{error.strerror or error}. Check the path"
    path = target if fault == _FULL and target else error.filename or target
    where = os.fsdecode(path) if isinstance(path, str | bytes | Path) else ""
    return StorageError(f"{where}: {fault}" if where else fault)


@contextlib.contextmanager
def storage_errors(target: Path) -> Iterator[None]:
    """Turn the faults of the file system into a `StorageError` of one line.

    A missing file is left alone, because the caller knows what makes the file.
    """
    try:
        yield
    except OSError as error:
        if fault_number(error) in _FAULTS:
            raise storage_error(error, target) from error
        raise


def beside(path: Path, ending: str) -> Path:
    """The path with `ending` behind its name.

    Raises:
        StorageError: the path has no name, as "/" and "." have none, or a name that libraries do
            not take.
    """
    try:
        usable = bool(path.name.encode()) and "\0" not in str(path)
    except UnicodeEncodeError:  # not UTF-8
        usable = False
    if not usable:
        raise StorageError(f"'{path}': not the name of a file or folder. Add a name")
    return path.with_name(path.name + ending)


def partial_path(target: Path) -> Path:
    """The temporary name of `target`, in the same folder, so that the final move is atomic.

    Every process uses the same name, so that the next run finds what a killed run left. The lock of
    the output (`util.locks`) keeps other processes out.
    """
    return beside(target, ".partial")


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path. Move it to `target` if the block succeeds, else remove it."""
    partial = partial_path(target)
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(partial)
        try:
            yield partial
            if partial.is_file():
                sync(partial)
            move_into_place(partial, target)
        except BaseException:
            remove(partial)
            raise


def move_into_place(partial: Path, target: Path) -> None:
    """Rename a finished file or folder to `target`, which is replaced. A file replaces no folder,
    which may be the user's.

    A file or an earlier folder is at `target` at any moment: Linux exchanges two folders in one
    step. On a file system that cannot do this, a kill may leave the earlier folder beside `target`.
    """
    old = beside(target, ".old.partial")
    remove(old)
    try:
        if target.is_dir() and not target.is_symlink():
            if not partial.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            # A folder cannot be renamed to a folder that contains files.
            if _exchange(partial, target):
                remove(partial)
                return
            target.rename(old)
        partial.replace(target)
        remove(old)
    except BaseException:  # an interrupt comes between any two steps
        if os.path.lexists(target):
            remove(old)
        elif old.exists():
            old.rename(target)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; whether the system can do this."""
    import ctypes  # takes a few milliseconds, which most commands need not wait for

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    if rename is None:
        return False
    return not rename(here, os.fsencode(one), here, os.fsencode(other), exchange)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_own(path: Path) -> bool:
    """Whether `path` is a regular file with no other name: writing to it changes no other file."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_nlink == 1


def sync(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text to `target`, completely or not at all."""
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")


def write_through(target: Path, text: str) -> None:
    """Write a file of the user as `write_text` does. A link stays: the file it leads to changes."""
    write_text(resolved(target) if target.is_symlink() else target, text)


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON. Keys are sorted, so that equal values give equal files."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a regular file, which is read in pieces; see `open_regular`."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def has_sha256(path: Path, expected: str) -> bool:
    """Whether there is a file at `path` with this SHA-256."""
    return path.is_file() and sha256(path) == expected
