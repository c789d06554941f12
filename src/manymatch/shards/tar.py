"""Reading the samples of a WebDataset tar file: only those wanted, nothing larger than it may be.

Any WebDataset reader can read the shards. Ours seeks over the images and members it does not
need (other processes' images, thumbnails in training) and refuses oversized members, both of
which the streaming reader of `webdataset` cannot do.
"""

from __future__ import annotations

import itertools
import os
import tarfile
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from webdataset.tariterators import base_plus_ext

from manymatch.system.errors import DataError

MAX_MEMBER_BYTES = 64 * 2**20

RawSample = dict[str, bytes]
"""A sample's members by suffix ("json", "features.npy"); its key under "__key__"."""

Bytes = bytes | memoryview
"""What a file is written from; a view is of single bytes, and nobody changes what it shows."""

Member = tuple[int, int]
"""Where in the tar file a member's content begins, and its size; -1 if it is no plain file."""


def raw_samples(
    path: Path, images: int, wanted: AbstractSet[int], suffixes: AbstractSet[str]
) -> Iterator[tuple[int, RawSample]]:
    """(number in the shard, members) of each wanted sample of a shard that holds `images`."""
    try:
        with path.open("rb") as stream:
            state = os.fstat(stream.fileno())
            found = _samples(path, state.st_size, state.st_mtime_ns)
            if len(found) != images:
                raise DataError(
                    f"{path}: {len(found)} images where the index says {images}; "
                    "run the stage 'shards' again"
                )
            for number in sorted(wanted):
                yield number, _read(stream, *found[number], suffixes)
    except FileNotFoundError:
        raise DataError(f"{path}: no such shard; run the stage 'shards' again") from None
    except (OSError, EOFError, tarfile.TarError) as error:
        raise DataError(f"{path}: damaged shard ({error}); run the stage 'shards' again") from None


@lru_cache(maxsize=256)
def _samples(path: Path, size: int, changed: int) -> list[tuple[str, dict[str, Member]]]:
    """Key and members by suffix of each sample. Remembered while the file stays the same: every
    epoch reads it, and headers take longer to understand than contents to read."""
    with tarfile.open(path, "r:") as archive:
        return [
            (key, {_parts(member)[1]: _place(member) for member in members})
            for key, members in itertools.groupby(archive, lambda member: _parts(member)[0])
        ]


def _parts(member: tarfile.TarInfo) -> tuple[str, str]:
    """The sample's key and the member's suffix, as WebDataset splits a name."""
    key, suffix = base_plus_ext(member.name)
    return key or member.name, suffix or ""


def _place(member: tarfile.TarInfo) -> Member:
    return member.offset_data, member.size if member.isreg() else -1


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
