"""Unpacking tar, tar.gz and zip files from elsewhere. Nothing in the files is trusted.

`tarfile.data_filter` does not replace the checks: it allows links and any size.
"""

import contextlib
import errno
import gzip
import itertools
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from manymatch.datasets.fetching.disk import require_space
from manymatch.datasets.fetching.transfer import Check
from manymatch.util.errors import SourceError, told
from manymatch.util.files import replacing
from manymatch.util.json_stream import elements
from manymatch.util.numpy_file import ZIP_FAULTS
from manymatch.util.progress import track
from manymatch.util.regular_file import open_regular

MAX_MEMBERS = 1_000_000
MAX_EXPANSION = 100
"""How many times its own size an archive may unpack to. Photographs reach 1, text about 10."""
_SMALL = 16 * 2**20
"""The number of bytes that an archive of any size may unpack to."""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
_LONGEST_HEADER = 2**18
"""Bytes. `tarfile` keeps several hundred headers of one member in memory, then gives up."""
_LONGEST_PADDING = 2**26
"""Bytes. GNU tar writes at most a record of 10 KiB after the end mark, unless told otherwise."""
_BLOCK = 512
_KIND = 156
"""The byte of a tar's header that says what follows."""
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, *_PAX)
_READ_BYTES = 2**20
_LINK, _NO_FILE = "it is a link", "it is neither a file nor a folder"


@dataclass(frozen=True)
class Member:
    """A file or folder in an archive. `fault`: why this kind is refused; None: it is accepted."""

    name: str
    size: int
    is_folder: bool
    fault: str | None
    open: Callable[[], IO[bytes]]


@contextlib.contextmanager
def opened_archive(archive: Path) -> Iterator[Iterator[Member]]:
    """The members of the archive. The first bytes decide its kind.

    Raises:
        SourceError: the archive is missing, damaged or cut off; also while a member is read.
    """
    try:
        with open_regular(archive) as stream:
            start = stream.read(4)
            stream.seek(0)
            if start.startswith(b"PK"):
                with zipfile.ZipFile(stream) as opened:
                    yield (_zip_member(info, opened) for info in opened.infolist())
            elif start.startswith(b"\x1f\x8b"):
                with gzip.GzipFile(fileobj=stream) as plain:
                    yield _tar_members(plain)
            else:
                yield _tar_members(stream)
    except FileNotFoundError:
        raise SourceError(f"{archive}: no such archive") from None
    except (tarfile.TarError, *ZIP_FAULTS, RecursionError, OSError) as error:
        is_file_fault = isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile)
        if is_file_fault and getattr(error, "errno", 0) != errno.EINVAL:  # an impossible position
            raise
        reason = told(error)
        if isinstance(error, RecursionError):  # `tarfile` calls itself for every header
            reason = "too many headers for one member"
        raise SourceError(
            f"{archive}: the archive is damaged or cut off ({reason}). Download it again"
        ) from None


class _TarStream:
    """The bytes of a tar file, for checks that `tarfile` does not make.

    `tarfile` trusts the stated header length. A forged header can fill the memory, so `read`
    refuses it. `read` also refuses a short record whose key reaches to the end of the header,
    because `tarfile` would copy gigabytes. `tarfile` accepts a file that is cut off after a member:
    `last` reveals it.
    """

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self.seek, self.tell, self._stream = stream.seek, stream.tell, stream
        self.last = b""
        self.reads_header = True
        self._kind = b""
        """The kind of the extended header whose content comes next."""

    def read(self, size: int) -> bytes:
        if not self.reads_header:
            return self._stream.read(size)
        if not 0 <= size <= _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self.last = self._stream.read(size)
        if self._kind in _PAX:
            _check_records(self.last.rstrip(b"\0"))
        kind = b"" if self._kind else self.last[_KIND : _KIND + 1]
        self._kind = kind if kind in _EXTENDED else b""
        return self.last


def _check_records(records: bytes) -> None:
    """Check that every record `LENGTH KEY=VALUE\\n` of a header is as long as it claims."""
    at = 0
    while at < len(records):
        space = records.find(b" ", at, at + 8)
        end = at + int(records[at:space]) if space > at else at
        if not (space < end <= len(records) and b"=" in records[space : end - 1]):
            raise tarfile.ReadError("a damaged extended header")
        at = end


def _tar_members(stream: BinaryIO | gzip.GzipFile) -> Iterator[Member]:
    guarded = _TarStream(stream)
    with tarfile.open(fileobj=guarded, mode="r:") as opened:  # type: ignore[call-overload]
        at = -1
        for info in iter(opened.next, None):
            if info.size < 0 or opened.offset <= at:
                raise tarfile.ReadError("a header claims a negative size")
            at = opened.offset
            opened.members.clear()  # `tarfile` would keep every header
            guarded.reads_header = False
            fault = None if info.isfile() or info.isdir() else _NO_FILE
            yield Member(
                info.name,
                info.size if info.isfile() else 0,
                info.isdir(),
                _LINK if info.issym() or info.islnk() else fault,
                lambda info=info: opened.extractfile(info),  # type: ignore[misc]
            )
            guarded.reads_header = True
        if guarded.last != bytes(_BLOCK):
            raise tarfile.ReadError("the end mark is missing")
    # `tarfile` takes one block of zeros for the end mark and ignores the rest, which may be members
    # after a damaged header. At the very end gzip checks its checksum.
    length = 0
    while block := stream.read(_READ_BYTES):
        length += len(block)
        if block.count(0) < len(block) or length > _LONGEST_PADDING:
            raise tarfile.ReadError("content follows the end mark")


def _zip_member(info: zipfile.ZipInfo, opened: zipfile.ZipFile) -> Member:
    kind, fault = stat.S_IFMT(info.external_attr >> 16), None
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        fault = _LINK if kind == stat.S_IFLNK else _NO_FILE
    elif info.flag_bits & 1:
        fault = "it is encrypted"
    elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        fault = f"compression method {info.compress_type} is not supported"
    return Member(info.filename, info.file_size, info.is_dir(), fault, lambda: opened.open(info))


def is_archive(path: Path) -> bool:
    """Whether the content of the file looks like an archive that `extract` can unpack."""
    try:
        return path.is_file() and member_names(path, 1) is not None
    except SourceError:
        return False


def require_archive(path: Path) -> None:
    """Raise a `SourceError` unless `is_archive` is true."""
    if not is_archive(path):
        raise SourceError(f"{path}: neither a folder nor a complete tar, tar.gz or zip archive")


def member_names(archive: Path, most: int | None = None) -> list[str]:
    """The names of the first `most` members of the archive; None: of all."""
    with opened_archive(archive) as members:
        return [member.name for member in itertools.islice(members, most)]


def extract(archive: Path, folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Unpack `archive` (tar, tar.gz or zip) to the new folder `folder`, completely or not at all.

    Only files with a `wanted` name are written. Modes, owners and times are not restored.

    Raises:
        SourceError: the archive is damaged or cut off, or a member is refused: a path that leaves
            the folder, a link, a device, a member that overwrites another one, too many members or
            too many bytes. Names the archive and the member.
        StorageError: the disk is too small.
    """
    with replacing(folder) as partial, _checked(archive, "unpacking", wanted, partial) as members:
        partial.mkdir()
        for member in members:
            target = partial / member.name
            try:
                (target if member.is_folder else target.parent).mkdir(parents=True, exist_ok=True)
                if not member.is_folder:
                    with member.open() as source, target.open("xb") as sink:
                        shutil.copyfileobj(source, sink)
            except (FileExistsError, NotADirectoryError):
                fault = "it would overwrite an earlier member"
                raise _refusal(archive, member.name, fault) from None


@contextlib.contextmanager
def _checked(
    archive: Path, doing: str, wanted: Callable[[str], bool], folder: Path
) -> Iterator[Iterator[Member]]:
    """Every folder and every `wanted` file that may be written to the disk of `folder`."""

    def checked() -> Iterator[Member]:
        count, left = 0, max(_SMALL, MAX_EXPANSION * archive.stat().st_size)
        for member in track(members, f"{doing} {archive.name}"):
            if not (member.fault or member.is_folder or wanted(member.name)):
                continue
            count, left = count + 1, left - member.size
            fault = member.fault or _name_fault(member)
            if count > MAX_MEMBERS:
                fault = f"more than {MAX_MEMBERS:,} members"
            elif left < 0:
                fault = f"the archive unpacks to more than {MAX_EXPANSION} times its size"
            if fault:
                raise _refusal(archive, member.name, fault)
            require_space(folder, member.size, archive.name)
            yield member

    with opened_archive(archive) as members:
        yield checked()


def _name_fault(member: Member) -> str | None:
    name, path = member.name, PurePosixPath(member.name)
    if path.is_absolute() or name[1:2] == ":":
        return "its path is absolute"
    if ".." in path.parts:
        return "its path leaves the folder by '..'"
    if "\\" in name or not name.isprintable():
        return "its name contains a backslash or a character that cannot be printed"
    if len(name) > _LONGEST_PATH or any(len(p.encode()) > _LONGEST_NAME for p in path.parts):
        return "its name is too long"
    return None if path.parts or member.is_folder else "it has no name"


def _refusal(archive: Path, name: str, fault: str) -> SourceError:
    shown = ascii(name if len(name) <= 200 else name[:200] + "...")
    return SourceError(f"{archive}: member {shown}: {fault}. Nothing was unpacked")


# Checks of downloads without a checksum: whether the form of a file shows that the file is whole. A
# server that does not tell the length may cut a file unnoticed, and many dead links return an HTML
# page instead of the file. Then the next mirror is tried.


def whole_archive(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> None:
    """Check a tar, tar.gz or zip archive with `wanted` files: each can be read to its end."""
    count = 0
    with _checked(path, "checking", wanted, path.parent) as members:
        for member in members:
            if not member.is_folder:
                count += 1
                with member.open() as source:
                    while source.read(_READ_BYTES):
                        pass
    if not count:
        raise SourceError(f"{path}: the archive does not contain the wanted file")


def whole_json(*lists: str) -> Check:
    """A check for a JSON object with these `lists` at its top level."""

    def check(path: Path) -> None:
        for _ in elements(path, lists):
            pass

    return check


def whole_members(wanted: Callable[[str], bool], other: Check) -> Check:
    """A check for an archive with `wanted` files, or for a file that passes `other`."""
    return lambda path: whole_archive(path, wanted) if is_archive(path) else other(path)
