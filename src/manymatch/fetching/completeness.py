"""Checks of downloads without a checksum: whether the form of a file shows that the file is whole.

A server that does not tell the length may cut a file unnoticed, and many dead links return an HTML
page instead of the file. Then the next mirror is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manymatch.fetching.archives import count_whole, is_archive
from manymatch.fetching.transfer import Check
from manymatch.foreign.json_stream import elements
from manymatch.system.errors import SourceError


def whole_archive(path: Path) -> None:
    """Check a tar, tar.gz or zip archive: every file in the archive can be read to its end."""
    _require_members(path, lambda name: True)


def whole_json(*lists: str) -> Check:
    """A check for a JSON object with these `lists` at its top level."""

    def check(path: Path) -> None:
        for _ in elements(path, lists):
            pass

    return check


def whole_members(wanted: Callable[[str], bool], other: Check) -> Check:
    """A check for an archive with `wanted` files, or for a file that passes `other`."""

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
        raise SourceError(f"{path}: the archive does not contain the wanted file")
