"""Reading the wanted samples of a stream of shards, in order and with one open file at a time.

Any WebDataset reader can read the shards. This one seeks over the images and members that are not
wanted (images of other processes, thumbnails in training), and refuses oversized members. The
streaming reader of `webdataset` cannot, and takes four times as long, because it parses all tar
headers in every epoch.
"""

import bisect
import contextlib
import itertools
import os
import tarfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO

from webdataset.tariterators import base_plus_ext

from manymatch.shards import remote
from manymatch.shards.index import REMEDY, Split, open_shards
from manymatch.util.errors import DataError, told
from manymatch.util.prefetch import map_ahead
from manymatch.util.regular_file import open_regular
from manymatch.util.seal import Seal

MAX_MEMBER_BYTES = 64 * 2**20

RawSample = dict[str, bytes]
"""The members of a sample by suffix ("json", "features.npy"), and its key as "__key__"."""

Member = tuple[int, int]
"""Position of a member's content in the tar file, and its size; -1 if it is not a plain file."""

_AHEAD = 2
"""Shards at a URL that a thread fetches before they are read."""


@dataclass(frozen=True)
class _Shard:
    """An open shard; two with the same path, size and time of change are equal."""

    path: Path
    size: int
    changed: int
    stream: BinaryIO = field(compare=False)


def fetch(
    folder: Path,
    split: Split,
    shards: Sequence[int],
    positions: Iterable[int],
    suffixes: AbstractSet[str],
) -> Iterator[tuple[int, RawSample]]:
    """(position, sample) for every one of `positions`, in ascending order.

    Args:
        shards: the numbers of the split's shards in reading order.
        positions: image numbers, counted over the shards in reading order.
        suffixes: the members to read.

    Raises:
        DataError: a shard is missing or damaged.
    """
    wanted, seal = sorted(positions), open_shards(folder)
    starts = [0, *itertools.accumulate(split.shard_images[shard] for shard in shards)]
    bounds = [bisect.bisect_left(wanted, start) for start in starts]
    needed = [place for place in range(len(shards)) if bounds[place] < bounds[place + 1]]
    names = [split.shards[shards[place]] for place in needed]
    opened: Generator[_Shard, None, None] = (_open(seal, name) for name in names)
    if names and remote.source(seal, names[0]):
        opened = map_ahead(partial(_open, seal), names, _AHEAD, threads=_AHEAD)
    with contextlib.closing(opened):
        for place, shard in zip(needed, opened, strict=True):
            start, end = starts[place], starts[place + 1]
            try:
                with shard.stream:
                    samples = _samples(shard)
                    if len(samples) != end - start:
                        raise tarfile.ReadError(f"{len(samples)} images, not {end - start}")
                    for position in sorted(set(wanted[bounds[place] : bounds[place + 1]])):
                        yield position, _read(shard.stream, *samples[position - start], suffixes)
            except Exception as error:  # tarfile raises almost any exception, such as ValueError
                raise DataError(f"{shard.path}: damaged shard ({told(error)}). {REMEDY}") from None


def check_shards(folder: Path, split: Split) -> None:
    """Compare the hashes of all shards of a split with the seal, but those of shards at a URL: a
    `DataError` for a shard that is missing or damaged. Worker processes that are forked later need
    not compute the hashes again."""
    seal = open_shards(folder)
    for name in split.shards:
        if remote.source(seal, name) is None:
            seal.check(name)


def _open(seal: Seal, name: str) -> _Shard:
    """Open a shard that has the sealed content."""
    source = remote.source(seal, name)
    stream = remote.open_cached(seal, name, *source) if source else open_regular(seal.check(name))
    status = os.fstat(stream.fileno())
    return _Shard(seal.path / name, status.st_size, status.st_mtime_ns, stream)


@lru_cache(maxsize=4096)  # COCO has 450 shards, and an epoch reads each of them
def _samples(shard: _Shard) -> list[tuple[str, dict[str, Member]]]:
    """Key and members of every sample of a shard.

    The cache is valid while the file's size and time of change stay the same: every epoch needs
    the samples, and parsing headers takes longer than reading contents.
    """
    with tarfile.open(fileobj=shard.stream, mode="r:") as archive:
        return [
            (
                key,
                {
                    _parts(member)[1]: (member.offset_data, member.size if member.isreg() else -1)
                    for member in members
                },
            )
            for key, members in itertools.groupby(archive, lambda member: _parts(member)[0])
        ]


def _parts(member: tarfile.TarInfo) -> tuple[str, str]:
    """The key of the sample and the suffix of the member, as WebDataset divides a name."""
    key, suffix = base_plus_ext(member.name)
    return key or member.name, suffix or ""


def _read(
    stream: BinaryIO, key: str, members: dict[str, Member], suffixes: AbstractSet[str]
) -> RawSample:
    sample = {"__key__": key.encode()}
    for suffix in members.keys() & suffixes:
        sample[suffix] = _content(stream, f"{key}.{suffix}", *members[suffix])
    return sample


def _content(stream: BinaryIO, name: str, start: int, size: int) -> bytes:
    if not 0 <= size <= MAX_MEMBER_BYTES:
        raise tarfile.ReadError(f"'{name}' is not a file of at most {MAX_MEMBER_BYTES} B")
    content = os.pread(stream.fileno(), size, start)
    if len(content) != size:
        raise tarfile.ReadError(f"'{name}' is cut off")
    return content
