"""Writing the samples of a WebDataset tar file: headers between the samples' own bytes.

The file is the one that `webdataset.TarWriter` would write, which takes most of the stage's time:
it copies what it writes several times, a few kilobytes at once.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from functools import lru_cache

from manymatch.shards.background_writer import WrittenAside
from manymatch.shards.tar import Bytes

_CHECKSUM = 148
"""Where a header has its checksum, six octal digits and a zero byte; the name is at its start."""

Members = Mapping[str, Sequence[Bytes]]
"""Content of a sample's members by suffix, each in pieces."""


class Pack:
    """A tar file that is being written; it holds no time, user or group, so that equal samples
    give equal bytes."""

    def __init__(self, file: WrittenAside) -> None:
        self._file = file
        self._size = 0

    def write(self, key: str, members: Members) -> None:
        """Add a sample; readers know that a new one begins by its key."""
        for suffix in sorted(members):
            self._write_member(f"{key}.{suffix}", members[suffix])

    def close(self) -> None:
        """Two empty blocks say that the file is whole; it is filled up to a record."""
        end = 2 * tarfile.BLOCKSIZE
        self._put(bytes(end + -(self._size + end) % tarfile.RECORDSIZE))
        self._file.close()

    def _write_member(self, name: str, content: Sequence[Bytes]) -> None:
        size = sum(map(len, content))
        self._put(_header(name.encode("ascii"), size))
        for piece in content:
            self._put(piece)
        self._put(bytes(-size % tarfile.BLOCKSIZE))

    def _put(self, data: Bytes) -> None:
        self._size += len(data)
        self._file.write(data)


def _header(name: bytes, size: int) -> bytes:
    """Most members are as large as others: only the name, and with it the sum, is new."""
    found, total = _nameless(size)
    checksum = b"%06o\0" % (total + sum(name))
    return name + found[len(name) : _CHECKSUM] + checksum + found[_CHECKSUM + len(checksum) :]


@lru_cache(maxsize=1024)
def _nameless(size: int) -> tuple[bytes, int]:
    """A header without a name, and its checksum."""
    header = tarfile.TarInfo()
    header.size, header.mode = size, 0o444
    found = header.tobuf(tarfile.USTAR_FORMAT)
    return found, int(found[_CHECKSUM : _CHECKSUM + 6], 8)
