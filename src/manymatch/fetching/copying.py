"""Copying files of the user. They are never moved or linked, because they are not ours."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from manymatch.fetching.disk import require_space
from manymatch.fetching.gather import ADVICE, Gatherer
from manymatch.system.errors import SourceError


def copy_file(path: Path, target: Path) -> None:
    """Copy one file, for example a table of captions."""
    if not path.is_file():
        raise SourceError(f"{path}: expected a file, but this is a folder")
    require_space(target.parent, path.stat().st_size, path.name)
    shutil.copyfile(path, target)


def copy_named(
    gatherer: Gatherer,
    names: Mapping[str, str],
    raw: Path,
    optional: Collection[str] = (),
    advice: str = ADVICE,
) -> None:
    """Copy the file of every setting to `raw`.

    Args:
        names: the name of the copy by setting.
        optional: settings that may have no file.
        advice: what to do if a file is missing.
    """
    for key, name in names.items():
        if key not in optional or gatherer.has(key):
            copy_file(gatherer.one(key, advice), raw / name)
