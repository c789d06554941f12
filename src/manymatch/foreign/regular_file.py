"""Files from elsewhere. Only regular files are opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manymatch.system.regular_file import open_regular

__all__ = ["PICTURES", "open_regular", "read_regular", "regular_path"]

PICTURES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif"),
    *(".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
)
"""Endings of the pictures that `foreign.images` reads, which loads NumPy."""
UNREADABLE = (
    *(".heic", ".heif", ".avif", ".jxl", ".jp2", ".svg", ".psd"),
    *(".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"),
)
"""Endings of pictures that `foreign.images` does not read. They are named where they are found."""


@contextmanager
def regular_path(path: Path) -> Iterator[str]:
    """The name of the file that `open_regular` opened, for libraries that take only a path."""
    with open_regular(path) as file:
        yield f"/dev/fd/{file.fileno()}"


def read_regular(path: Path) -> bytes:
    """The content of a regular file; raises the same as `open_regular`."""
    with open_regular(path) as file:
        return file.read()
