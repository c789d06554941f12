"""Files that are either whole or not there: written under a temporary name, moved into place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymatch.system.errors import StorageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def storage_errors(target: Path) -> Iterator[None]:
    """Turn a full disk (or quota, or file size limit) under `target` into a one-line error."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(
                f"{target}: no space left while writing; nothing was replaced, "
                "free some space and run the stage again"
            ) from error
        raise


def partial_path(target: Path) -> Path:
    """Where `target` is built: in the same folder, so that the move into place is atomic."""
    return target.with_name(target.name + ".partial")


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path; move it to `target` if the block succeeds, remove it if not."""
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
    """Rename a finished file or folder over `target`, which is replaced whole."""
    if target.is_dir() and not target.is_symlink():
        # A folder cannot be renamed over a folder that holds files.
        doomed = target.with_name(target.name + ".old.partial")
        remove(doomed)
        target.rename(doomed)
        partial.rename(target)
        remove(doomed)
    else:
        partial.replace(target)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text to `target`, whole or not at all."""
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON (sorted keys, so that equal values give equal files)."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hex digest of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
