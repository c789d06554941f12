"""Reading the wanted samples of a stream of shards, in order and with one open file at a time.

Any WebDataset reader can read the shards. This one seeks over the images and members that are not
wanted (images of other processes, thumbnails in training), and refuses oversized members. The
streaming reader of `webdataset` cannot, and takes four times as long, because it parses all tar
headers in every epoch.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from webdataset.tariterators import base_plus_ext

from manymatch.shards.index import REMEDY, Split, open_shards
from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular
from manymatch.util.seal import Seal

MAX_MEMBER_BYTES = 64 * 2**20

RawSample = dict[str, bytes]
"""The members of a sample by suffix ("json", "features.npy"), and its key as "__key__"."""

Member = tuple[int, int]
"""Position of a member's content in the tar file, and its size; -1 if it is not a plain file."""

_State = tuple[Path, int, int]
"""Path, size and time of change of an open shard."""


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
    for shard, start, end in zip(shards, starts, starts[1:], strict=False):
        first, last = bisect.bisect_left(wanted, start), bisect.bisect_left(wanted, end)
        numbers = {position - start for position in wanted[first:last]}
        if numbers:
            with _open_shard(seal, split.shards[shard]) as (stream, state):
                samples = _samples(*state)
                if len(samples) != end - start:
                    raise tarfile.ReadError(f"{len(samples)} images, not {end - start}")
                for number in sorted(numbers):
                    yield start + number, _read(stream, *samples[number], suffixes)


def check_shards(folder: Path, split: Split) -> None:
    """Compare the hashes of all shards of a split with the seal.

    Worker processes that are forked later need not compute the hashes again.

    Raises:
        DataError: a shard is missing or damaged.
    """
    seal = open_shards(folder)
    for name in split.shards:
        seal.check(name)


@contextlib.contextmanager
def _open_shard(seal: Seal, name: str) -> Iterator[tuple[BinaryIO, _State]]:
    """Open a shard that has the sealed content, and turn its faults into one line."""
    path = seal.check(name)
    try:
        with open_regular(path) as stream:
            status = os.fstat(stream.fileno())
            yield stream, (path, status.st_size, status.st_mtime_ns)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise DataError(f"{path}: damaged shard ({error}). {REMEDY}") from None


@lru_cache(maxsize=4096)  # COCO has 450 shards, and an epoch reads each of them
def _samples(path: Path, size: int, changed: int) -> list[tuple[str, dict[str, Member]]]:
    """Key and members of every sample of a shard.

    The cache is valid while the file's `size` and time of change stay the same: every epoch needs
    the samples, and parsing headers takes longer than reading contents.
    """
    with open_regular(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
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
