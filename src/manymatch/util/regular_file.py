"""Opening files from elsewhere. Only regular files are opened.

A pipe without a writer blocks for ever, and a device such as /dev/zero has no end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from manymatch.util.errors import DataError

PICTURES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif"),
    *(".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
)
"""Endings of the pictures that `images` reads, which loads NumPy."""
UNREADABLE = (
    *(".heic", ".heif", ".avif", ".jxl", ".jp2", ".svg", ".psd"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"),
)
"""Endings of pictures that `images` does not read. They are named where they are found."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a regular file, or a link to one, for reading.

    Raises:
        DataError: the path leads to a folder, pipe, device or socket, or cannot be read.
        FileNotFoundError: there is no such file.
    """
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer. O_NOCTTY: a terminal stays unchanged.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: cannot be read: {reason}") from None
    # The open file is checked, not the path, which another program may replace meanwhile.
    kind = stat.S_IFMT(os.fstat(file).st_mode)
    if kind != stat.S_IFREG:
        os.close(file)
        name = _KINDS.get(kind, "of an unknown kind")
        raise DataError(f"{path}: {name}, not a regular file. Give a regular file")
    return os.fdopen(file, "rb", buffering)


@contextmanager
def regular_path(path: Path) -> Iterator[str]:
    """The name of the file that `open_regular` opened, for libraries that take only a path."""
    with open_regular(path) as file:
        yield f"/dev/fd/{file.fileno()}"


def read_regular(path: Path) -> bytes:
    """The content of a regular file; raises the same as `open_regular`."""
    with open_regular(path) as file:
        return file.read()
