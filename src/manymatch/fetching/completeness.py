"""Checks of downloads that have no checksum: whether a file is whole, as far as its form tells.

A server that does not tell a file's length may cut it unseen, and somebody's front page comes in
place of many a file. The next mirror is asked then, instead of keeping what nobody can use.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manymatch.fetching.archives import count_whole, is_archive
from manymatch.fetching.transfer import Check
from manymatch.foreign.json_stream import elements
from manymatch.system.errors import SourceError


def whole_archive(path: Path) -> None:
    """A tar, tar.gz or zip archive, every file in it read to its end."""
    _require_members(path, lambda name: True)


def whole_json(*lists: str) -> Check:
    """An object with these `lists` at its top."""

    def check(path: Path) -> None:
        for _ in elements(path, lists):
            pass

    return check


def whole_members(wanted: Callable[[str], bool], other: Check) -> Check:
    """An archive with files that are `wanted`, or else a file that passes `other`."""

    def check(path: Path) -> None:
        if is_archive(path):
            _require_members(path, wanted)
        else:
            other(path)

    return check


def _require_members(path: Path, wanted: Callable[[str], bool]) -> None:
    if not is_archive(path):
        raise SourceError(f"{path}: not a whole tar, tar.gz or zip archive")
    if not count_whole(path, wanted):
        raise SourceError(f"{path}: an archive without the file that is looked for")
