"""Opening files from elsewhere. Only regular files are opened.

A pipe without a writer blocks for ever, and a device such as /dev/zero has no end.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from manymatch.system.errors import DataError

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
