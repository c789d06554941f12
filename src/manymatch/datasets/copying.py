"""Taking files of the user's: copied, never moved or linked, for they are not ours to change."""

from __future__ import annotations

import shutil
from pathlib import Path

from manymatch.datasets.disk import require_space
from manymatch.errors import SourceError


def copy_file(path: Path, target: Path) -> None:
    """Copy one file, such as a table of captions."""
    if not path.is_file():
        raise SourceError(f"{path}: expected a file, found a folder")
    require_space(target.parent, path.stat().st_size, path.name)
    shutil.copyfile(path, target)
