"""Room on the disk, asked for before it is used."""

from __future__ import annotations

import shutil
from pathlib import Path

from manymatch.system.errors import StorageError

RESERVE = 256 * 2**20
"""Bytes that are left free whatever is written."""


def require_space(folder: Path, needed: int, what: str) -> None:
    """A `StorageError` unless the disk of `folder` (which exists) takes `needed` bytes more."""
    free = shutil.disk_usage(folder).free
    if needed + RESERVE > free:
        raise StorageError(
            f"{what}: needs {_size(needed)} on the disk of {folder}, which has {_size(free)} free "
            f"({_size(RESERVE)} are kept back); free some space and run the stage again"
        )


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
