"""Files from elsewhere: which files a folder holds, and opening them. Only regular files are
opened.

A pipe without a writer blocks for ever, and a device such as /dev/zero has no end.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from manymatch.util.errors import ConfigError, DataError, SourceError

_HEIC = (".heic", ".heif")
HEIC_READ = find_spec("pillow_heif") is not None
"""Whether the extra `heic` is installed."""
PICTURES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif"),
    *(".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif"),
    *(_HEIC if HEIC_READ else ()),
)
"""Endings of the pictures that `images` reads, which loads NumPy."""
UNREADABLE = (
    *(() if HEIC_READ else _HEIC),
    *(".jxl", ".jp2", ".svg", ".psd"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"),
)
"""Endings of pictures that `images` does not read. They are named where they are found."""

HIDDEN = (".", "__MACOSX")
"""The beginnings of hidden names and of left-overs of other systems, such as `._a.jpg`."""
MOST_OTHERS = "MANYMATCH_OTHER_FILES"
"""The environment variable with the bound of `files_below`."""
_MOST_OTHERS, _OTHERS_EACH = 200_000, 10
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def conversion(path: str) -> str:
    """What to do about a picture whose ending is one of `UNREADABLE`."""
    extra = ", or install the extra 'heic'" if path.lower().endswith(_HEIC) else ""
    return f"Convert it to JPEG{extra}"


def files_below(
    folder: Path,
    endings: tuple[str, ...],
    linked: bool = True,
    unreadable: Callable[[OSError], None] | None = None,
) -> Iterator[Path]:
    """Yield the files with one of the `endings` below `folder`, sorted within each folder.

    Hidden files and folders are skipped. Each real folder is entered once.

    Args:
        endings: in lower case; the endings of files count in any case.
        linked: enter linked folders, too.
        unreadable: called with the error of a folder that cannot be read.

    Raises:
        SourceError: hardly one of many files has such an ending or is a picture: the folder is a
            whole disk.
        ConfigError: the environment variable of the bound is not a number.
    """
    bound = os.environ.get(MOST_OTHERS, str(_MOST_OTHERS))
    if not bound.isdecimal():
        raise ConfigError(f"{MOST_OTHERS}={bound}: expected a whole number")
    entered, hits, others = set(), 0, 0
    for parent, folders, files in os.walk(folder, onerror=unreadable, followlinks=linked):
        real = os.path.realpath(parent)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        wanted = [
            name
            for name in sorted(files)
            if name.lower().endswith(endings) and not name.startswith(HIDDEN)
        ]
        pictures = sum(name.lower().endswith(PICTURES) for name in files)
        hits, others = hits + len(wanted), others + len(files) - max(len(wanted), pictures)
        others += len(folders)
        if others > max(int(bound), _OTHERS_EACH * hits):
            raise SourceError(
                f"{folder}: only {hits} of the first {hits + others} files and folders count. "
                f"Give the folder that holds the files, or set {MOST_OTHERS} to more than {bound}"
            )
        yield from (Path(parent, name) for name in wanted)


def resolved(path: Path, strict: bool = False) -> Path:
    """`path` without links. Links in a circle stay, and then nothing can be opened there.

    `Path.resolve` raises a `RuntimeError` for such links before Python 3.13.

    Raises:
        OSError: `strict`, and there is no such file, or links lead in a circle.
    """
    return Path(os.path.realpath(path, strict=strict))


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


def read_regular(path: Path, most_bytes: int | None = None) -> bytes:
    """The content of a regular file; raises the same as `open_regular`, and a `DataError` if there
    are more than `most_bytes`."""
    with open_regular(path) as file:
        if most_bytes is not None and os.fstat(file.fileno()).st_size > most_bytes:
            raise DataError(f"{path}: more than {most_bytes:,} bytes. Is this the right file?")
        return file.read()
