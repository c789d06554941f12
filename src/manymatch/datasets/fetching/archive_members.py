"""The members of tar, tar.gz and zip files in one form, and the faults of damaged archives."""

from __future__ import annotations

import contextlib
import errno
import gzip
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from manymatch.util import zip_file
from manymatch.util.errors import SourceError
from manymatch.util.regular_file import open_regular

_LONGEST_HEADER = 2**20
_MOST_READS = 100
"""Reads for the header of one member. `tarfile` calls itself for every header before a member."""
_LONGEST_PADDING = 2**26
"""Bytes. GNU tar writes at most a record of 10 KiB after the end mark, unless told otherwise."""
_BLOCK = 512
_KIND = 156
"""The byte of a header that says what follows."""
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_READ_BYTES = 2**20


@dataclass(frozen=True)
class Member:
    """A file or folder in an archive. `fault`: why this kind of member is refused, if it is."""

    name: str
    size: int
    is_folder: bool
    fault: str | None
    open: Callable[[], IO[bytes]]


@contextlib.contextmanager
def archive_faults(archive: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{archive}: no such archive") from None
    except (tarfile.TarError, *zip_file.FAULTS, OSError) as error:
        is_file_fault = isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile)
        if is_file_fault and getattr(error, "errno", 0) != errno.EINVAL:  # an impossible position
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(
            f"{archive}: the archive is damaged or cut off ({reason}). Download it again"
        ) from None


@contextlib.contextmanager
def opened_archive(archive: Path) -> Iterator[Iterator[Member]]:
    """The members of the archive. The first bytes decide its kind."""
    with open_regular(archive) as stream:
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
    """The bytes of a tar file, for checks that `tarfile` does not make.

    `tarfile` reads extended headers into memory, whatever length they claim and however many
    follow each other: `read` refuses both. `tarfile` accepts a file that is cut off after a member:
    `last` reveals it.
    """

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self._stream = stream
        self.last = b""
        self._reads_header, self._reads = True, 0
        self._extended = b""
        """The kind of the extended header whose content comes next."""

    @contextlib.contextmanager
    def content(self) -> Iterator[None]:
        """Meanwhile the content of a member is read, not its header."""
        self._reads_header = False
        yield
        self._reads_header, self._reads = True, 0

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header claims {size} bytes")
        self._reads += 1
        if self._reads_header and self._reads > _MOST_READS:
            raise tarfile.ReadError("too many headers for one member")
        self.last = self._stream.read(size)
        if self._reads_header:
            if self._extended in _PAX:
                _check_pax(self.last.rstrip(b"\0"))
            kind = b"" if self._extended else self.last[_KIND : _KIND + 1]
            self._extended = kind if kind in (*_LONG, *_PAX) else b""
        return self.last

    def seek(self, position: int, whence: int = 0) -> int:
        return self._stream.seek(position, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _check_pax(records: bytes) -> None:
    """Check that every record `LENGTH KEY=VALUE\\n` is as long as it claims.

    `tarfile` lets the keys of short records reach to the end of the header, which takes gigabytes.
    """
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
            with guarded.content():
                yield _tar_member(opened, info)
        if guarded.last != bytes(_BLOCK):
            raise tarfile.ReadError("the end mark is missing")
        _check_padding(stream)


def _check_padding(stream: BinaryIO | gzip.GzipFile) -> None:
    """Check that only zeros follow the end mark, up to the end: there gzip checks its checksum.

    `tarfile` takes one block of zeros for the end mark and ignores the rest, which may be members
    after a damaged header.
    """
    length = 0
    while block := stream.read(_READ_BYTES):
        length += len(block)
        if block.count(0) < len(block) or length > _LONGEST_PADDING:
            raise tarfile.ReadError("content follows the end mark")


def _tar_member(opened: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    fault = None
    if info.issym() or info.islnk():
        fault = "it is a link"
    elif not (info.isfile() or info.isdir()):
        fault = "it is neither a file nor a folder"
    size = info.size if info.isfile() else 0
    # Only files are opened, and the content of a file is never None.
    return Member(info.name, size, info.isdir(), fault, lambda: opened.extractfile(info))  # type: ignore[arg-type,return-value]


def _zip_members(opened: zipfile.ZipFile) -> Iterator[Member]:
    for info in opened.infolist():
        yield Member(
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
