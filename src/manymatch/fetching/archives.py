"""Unpacking tar, tar.gz and zip files from elsewhere. Nothing in the files is trusted.

`tarfile`'s own data filter would not replace the checks: it allows links and any size, and zip
files need the same checks of names.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from manymatch.fetching.disk import require_space
from manymatch.system.errors import SourceError
from manymatch.system.files import replacing
from manymatch.system.progress import track

MAX_MEMBERS = 1_000_000
MAX_EXPANSION = 100
"""How many times its own size an archive may unpack to. Photographs reach 1, text about 10."""
_SMALL = 16 * 2**20
"""Bytes that every archive may unpack to, however small it is."""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
_LONGEST_HEADER = 2**20
_BLOCK = 512
_READ = 2**20

_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    # The standard library raises these for some damaged headers.
    ValueError,
    OverflowError,
    NotImplementedError,
)


@dataclass(frozen=True)
class _Member:
    """A file or folder in an archive. `fault`: why this kind of member is refused, if it is."""

    name: str
    size: int
    is_folder: bool
    fault: str | None
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Whether the content of the file looks like an archive that `extract` can unpack."""
    return path.is_file() and (zipfile.is_zipfile(path) or tarfile.is_tarfile(path))


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

        def write(member: _Member, path: tuple[str, ...]) -> None:
            _write(archive, member, partial.joinpath(*path))

        _go_through(archive, "unpacking", wanted, partial, write)


def count_whole(archive: Path, wanted: Callable[[str], bool] = lambda name: True) -> int:
    """How many files `extract` would write. Reads every file to its end, and raises the same."""
    return _go_through(archive, "checking", wanted, archive.parent, _read_through)


def _go_through(
    archive: Path,
    doing: str,
    wanted: Callable[[str], bool],
    room: Path,
    use: Callable[[_Member, tuple[str, ...]], None],
) -> int:
    """Call `use` with every folder and every `wanted` file, and with the parts of its path.

    All checks come first. The disk of the folder `room` must have space for the files.

    Returns:
        The number of wanted files.
    """
    count = 0
    with _damage(archive):
        budget = _Budget(archive, room)
        with _opened(archive) as members:
            for member in track(members, f"{doing} {archive.name}"):
                if member.fault or member.is_folder or wanted(member.name):
                    budget.spend(member)
                    use(member, _safe_parts(archive, member))
                    count += not member.is_folder
    return count


def _read_through(member: _Member, path: tuple[str, ...]) -> None:
    if not member.is_folder:
        with member.open() as source:
            while source.read(_READ):
                pass


class _Budget:
    """How many more members and bytes the archive may contain."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._members = MAX_MEMBERS
        self._bytes = max(_SMALL, MAX_EXPANSION * archive.stat().st_size)

    def spend(self, member: _Member) -> None:
        self._members -= 1
        self._bytes -= member.size
        if self._members < 0:
            raise _refusal(self._archive, member.name, f"more than {MAX_MEMBERS:,} members")
        if self._bytes < 0:
            times = f"the archive unpacks to more than {MAX_EXPANSION} times its size"
            raise _refusal(self._archive, member.name, times)
        require_space(self._folder, member.size, self._archive.name)


def _write(archive: Path, member: _Member, target: Path) -> None:
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
    with _damage(archive), _opened(archive) as members:
        return [member.name for member in members]


def _safe_parts(archive: Path, member: _Member) -> tuple[str, ...]:
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


@contextlib.contextmanager
def _damage(archive: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{archive}: no such archive") from None
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and not _is_damage(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(
            f"{archive}: the archive is damaged or cut off ({reason}). Download it again"
        ) from None


def _is_damage(error: OSError) -> bool:
    """Whether the error is a wrong checksum of gzip, or an impossible position in a header."""
    return isinstance(error, gzip.BadGzipFile) or error.errno == errno.EINVAL


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[Iterator[_Member]]:
    """The members of the archive. The first bytes decide its kind."""
    with archive.open("rb") as stream:
        start = stream.read(4)
        stream.seek(0)
        if start.startswith(b"PK"):
            with zipfile.ZipFile(stream) as opened:
                yield _zip_members(opened)
        elif start.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=stream) as plain:
                yield _tar_members(plain)
        else:
            yield _tar_members(stream)


class _TarStream:
    """The bytes of a tar file, for two checks that `tarfile` does not make.

    `tarfile` reads extended headers into memory, whatever length they claim: `read` refuses long
    ones. `tarfile` accepts a file that is cut off after a member: `last` reveals it.
    """

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self.last = self._stream.read(size)
        return self.last

    def seek(self, position: int, whence: int = 0) -> int:
        return self._stream.seek(position, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _tar_members(stream: BinaryIO | gzip.GzipFile) -> Iterator[_Member]:
    guarded = _TarStream(stream)
    with tarfile.open(fileobj=guarded, mode="r:") as opened:  # type: ignore[call-overload]
        for info in iter(opened.next, None):
            opened.members.clear()  # `tarfile` would keep every header
            yield _tar_member(opened, info)
        if guarded.last != bytes(_BLOCK):
            raise tarfile.ReadError("the end mark is missing")
        _read_padding(stream)


def _read_padding(stream: BinaryIO | gzip.GzipFile) -> None:
    """Read what follows the end mark: gzip checks its checksum at the end. It is never long."""
    left = _READ
    while left and (block := stream.read(left)):
        left -= len(block)


def _tar_member(opened: tarfile.TarFile, info: tarfile.TarInfo) -> _Member:
    fault = None
    if info.issym() or info.islnk():
        fault = "it is a link"
    elif not (info.isfile() or info.isdir()):
        fault = "it is neither a file nor a folder"
    size = info.size if info.isfile() else 0
    return _Member(info.name, size, info.isdir(), fault, lambda: _tar_content(opened, info))


def _tar_content(opened: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = opened.extractfile(info)
    if content is None:
        raise tarfile.ReadError(f"{info.name!a} has no content")
    return content


def _zip_members(opened: zipfile.ZipFile) -> Iterator[_Member]:
    for info in opened.infolist():
        yield _Member(
            info.filename,
            info.file_size,
            info.is_dir(),
            _zip_fault(info),
            lambda info=info: opened.open(info),  # type: ignore[misc]
        )


def _zip_fault(info: zipfile.ZipInfo) -> str | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "it is a link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "it is neither a file nor a folder"
    if info.flag_bits & 1:
        return "it is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compression method {info.compress_type} is not supported"
    return None
