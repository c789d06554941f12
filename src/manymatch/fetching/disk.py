"""Free space on the disk, checked before it is used."""

from __future__ import annotations

import shutil
from pathlib import Path

from manymatch.system.errors import StorageError

RESERVE = 256 * 2**20
"""Bytes that always stay free."""


def require_space(folder: Path, needed: int, what: str) -> None:
    """Raise `StorageError` unless the disk of the existing `folder` has `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed + RESERVE > free:
        raise StorageError(
            f"{what}: needs {_size(needed)} on the disk of {folder}, which has {_size(free)} free "
            f"({_size(RESERVE)} must stay free). Free some space and run the stage again"
        )


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
