"""Free space on the disk, checked before it is used; and copies of the user's files."""

import shutil
from pathlib import Path

from manymatch.util.errors import SourceError, StorageError
from manymatch.util.regular_file import regular_path

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


def copy_file(path: Path, target: Path) -> None:
    """Copy one file. Files of the user are never moved or linked, because they are not ours."""
    try:
        with regular_path(path) as opened:
            require_space(target.parent, Path(opened).stat().st_size, path.name)
            shutil.copyfile(opened, target)
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file, or a link to nowhere. Check the path") from None


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
