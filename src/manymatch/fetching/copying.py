"""Copying files of the user. They are never moved or linked, because they are not ours."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from manymatch.fetching.disk import require_space
from manymatch.fetching.gather import ADVICE, Gatherer
from manymatch.foreign.regular_file import regular_path


def copy_file(path: Path, target: Path) -> None:
    """Copy one file, for example a table of captions."""
    with regular_path(path) as opened:
        require_space(target.parent, Path(opened).stat().st_size, path.name)
        shutil.copyfile(opened, target)


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
