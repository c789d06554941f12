"""Taking files of the user's: copied, never moved or linked, for they are not ours to change."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from manymatch.fetching.disk import require_space
from manymatch.fetching.gather import ADVICE, Gatherer
from manymatch.system.errors import SourceError


def copy_file(path: Path, target: Path) -> None:
    """Copy one file, such as a table of captions."""
    if not path.is_file():
        raise SourceError(f"{path}: expected a file, found a folder")
    require_space(target.parent, path.stat().st_size, path.name)
    shutil.copyfile(path, target)


def copy_named(
    gatherer: Gatherer,
    names: Mapping[str, str],
    raw: Path,
    optional: Collection[str] = (),
    advice: str = ADVICE,
) -> None:
    """Copy the file of each setting to `raw`, where `names` says what it is called; of those in
    `optional` what there is."""
    for key, name in names.items():
        if key not in optional or gatherer.has(key):
            copy_file(gatherer.one(key, advice), raw / name)
