"""Writing files completely or not at all: under a temporary name, then moved into place."""

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
    """Turn a full disk (or a quota, or a file size limit) into a `StorageError` of one line."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(
                f"{target}: no space left while writing. Nothing was replaced. Free some space and "
                "run the stage again"
            ) from error
        raise


def partial_path(target: Path) -> Path:
    """The temporary name of `target`, in the same folder, so that the final move is atomic.

    Every process uses the same name, so that the next run finds what a killed run left. The lock of
    the output (`system.locks`) keeps other processes out.
    """
    return target.with_name(target.name + ".partial")


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
    """Rename a finished file or folder to `target`, which is replaced."""
    old = target.with_name(target.name + ".old.partial")
    remove(old)
    if target.is_dir() and not target.is_symlink():
        # A folder cannot be renamed to a folder that contains files.
        target.rename(old)
    partial.replace(target)
    remove(old)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def write_text(target: Path, text: str) -> None:
    """Write UTF-8 text to `target`, completely or not at all."""
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(target: Path, value: Any) -> None:
    """Write `value` as indented JSON. Keys are sorted, so that equal values give equal files."""
    write_text(target, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file, which is read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
