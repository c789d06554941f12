"""Unpacking tar, tar.gz and zip files from elsewhere. Nothing in the files is trusted.

`tarfile`'s own data filter would not replace the checks: it allows links and any size, and zip
files need the same checks of names.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from manymatch.datasets.fetching.archive_members import Member, archive_faults, opened_archive
from manymatch.datasets.fetching.disk import require_space
from manymatch.datasets.fetching.transfer import Check
from manymatch.util.errors import SourceError
from manymatch.util.files import replacing
from manymatch.util.json_stream import elements
from manymatch.util.progress import track

MAX_MEMBERS = 1_000_000
MAX_EXPANSION = 100
"""How many times its own size an archive may unpack to. Photographs reach 1, text about 10."""
_SMALL = 16 * 2**20
"""Bytes that every archive may unpack to, however small it is."""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
_READ_BYTES = 2**20


def is_archive(path: Path) -> bool:
    """Whether the content of the file looks like an archive that `extract` can unpack."""
    if not path.is_file():
        return False
    try:
        with archive_faults(path), opened_archive(path) as members:
            next(members, None)
    except SourceError:
        return False
    return True


def require_archive(path: Path) -> None:
    """Raise a `SourceError` unless `is_archive` is true."""
    if not is_archive(path):
        raise SourceError(f"{path}: neither a folder nor a complete tar, tar.gz or zip archive")


def extract(archive: Path, folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Unpack `archive` (tar, tar.gz or zip) to the new folder `folder`, completely or not at all.

    Only files with a `wanted` name are written. Modes, owners and times are not restored.

    Raises:
        SourceError: the archive is damaged or cut off, or a member is refused: a path that leaves
            the folder, a link, a device, a member that overwrites another one, too many members or
            too many bytes. Names the archive and the member.
        StorageError: the disk is too small.
    """
    with replacing(folder) as partial:
        partial.mkdir()

        def write(member: Member, path: tuple[str, ...]) -> None:
            _write(archive, member, partial.joinpath(*path))

        _go_through(archive, "unpacking", wanted, partial, write)


def count_whole(archive: Path, wanted: Callable[[str], bool] = lambda name: True) -> int:
    """How many files `extract` would write. Reads every file to its end, and raises the same."""
    return _go_through(archive, "checking", wanted, archive.parent, _read_through)


# Checks of downloads without a checksum: whether the form of a file shows that the file is whole. A
# server that does not tell the length may cut a file unnoticed, and many dead links return an HTML
# page instead of the file. Then the next mirror is tried.


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
    require_archive(path)
    if not count_whole(path, wanted):
        raise SourceError(f"{path}: the archive does not contain the wanted file")


def _go_through(
    archive: Path,
    doing: str,
    wanted: Callable[[str], bool],
    room: Path,
    use: Callable[[Member, tuple[str, ...]], None],
) -> int:
    """Call `use` with every folder and every `wanted` file, and with the parts of its path.

    All checks come first. The disk of the folder `room` must have space for the files.

    Returns:
        The number of wanted files.
    """
    count = 0
    with archive_faults(archive):
        budget = _Budget(archive, room)
        with opened_archive(archive) as members:
            for member in track(members, f"{doing} {archive.name}"):
                if member.fault or member.is_folder or wanted(member.name):
                    budget.spend(member)
                    use(member, _safe_parts(archive, member))
                    count += not member.is_folder
    return count


def _read_through(member: Member, path: tuple[str, ...]) -> None:
    if not member.is_folder:
        with member.open() as source:
            while source.read(_READ_BYTES):
                pass


class _Budget:
    """How many more members and bytes the archive may contain."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._members = MAX_MEMBERS
        self._bytes = max(_SMALL, MAX_EXPANSION * archive.stat().st_size)

    def spend(self, member: Member) -> None:
        self._members -= 1
        self._bytes -= member.size
        if self._members < 0:
            raise _refusal(self._archive, member.name, f"more than {MAX_MEMBERS:,} members")
        if self._bytes < 0:
            times = f"the archive unpacks to more than {MAX_EXPANSION} times its size"
            raise _refusal(self._archive, member.name, times)
        require_space(self._folder, member.size, self._archive.name)


def _write(archive: Path, member: Member, target: Path) -> None:
    try:
        if member.is_folder:
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as source, target.open("xb") as sink:
            shutil.copyfileobj(source, sink)
    except (FileExistsError, NotADirectoryError):
        raise _refusal(archive, member.name, "it would overwrite an earlier member") from None


def member_names(archive: Path) -> list[str]:
    """The names of all members of the archive."""
    with archive_faults(archive), opened_archive(archive) as members:
        return [member.name for member in members]


def _safe_parts(archive: Path, member: Member) -> tuple[str, ...]:
    """The parts of the member's path below the folder. Unusual paths are refused."""
    name, path = member.name, PurePosixPath(member.name)
    if member.fault:
        fault = member.fault
    elif path.is_absolute() or (len(name) > 1 and name[1] == ":"):
        fault = "its path is absolute"
    elif ".." in path.parts:
        fault = "its path leaves the folder by '..'"
    elif "\\" in name or not name.isprintable():
        fault = "its name contains a backslash or a character that cannot be printed"
    elif len(name) > _LONGEST_PATH or any(len(p.encode()) > _LONGEST_NAME for p in path.parts):
        fault = "its name is too long"
    elif not path.parts and not member.is_folder:
        fault = "it has no name"
    else:
        return path.parts
    raise _refusal(archive, name, fault)


def _refusal(archive: Path, name: str, fault: str) -> SourceError:
    shown = ascii(name if len(name) <= 200 else name[:200] + "...")
    return SourceError(f"{archive}: member {shown}: {fault}. Nothing was unpacked")
