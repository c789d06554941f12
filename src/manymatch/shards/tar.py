"""Reading the samples of a WebDataset tar file: only those wanted, nothing larger than it may be.

Any WebDataset reader can read the shards. Ours seeks over the images and members it does not
need (other processes' images, thumbnails in training) and refuses oversized members, both of
which the streaming reader of `webdataset` cannot do.
"""

from __future__ import annotations

import itertools
import tarfile
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from webdataset.tariterators import base_plus_ext

from manymatch.errors import DataError

MAX_MEMBER_BYTES = 64 * 2**20

RawSample = dict[str, bytes]
"""A sample's members by suffix ("json", "features.npy"); its key under "__key__"."""


def raw_samples(
    path: Path, images: int, wanted: AbstractSet[int], suffixes: AbstractSet[str]
) -> Iterator[tuple[int, RawSample]]:
    """(number in the shard, members) of each wanted sample of a shard that holds `images`."""
    found = 0
    try:
        with tarfile.open(path, "r:") as archive:
            for key, members in itertools.groupby(archive, _key):
                if found in wanted:
                    yield found, _read(archive, key, members, suffixes)
                found += 1
    except FileNotFoundError:
        raise DataError(f"{path}: no such shard; run the stage 'shards' again") from None
    except (OSError, EOFError, tarfile.TarError) as error:
        raise DataError(f"{path}: damaged shard ({error}); run the stage 'shards' again") from None
    if found != images:
        raise DataError(
            f"{path}: {found} images where the index says {images}; run the stage 'shards' again"
        )


def _key(member: tarfile.TarInfo) -> str:
    return base_plus_ext(member.name)[0] or member.name


def _read(
    archive: tarfile.TarFile,
    key: str,
    members: Iterator[tarfile.TarInfo],
    suffixes: AbstractSet[str],
) -> RawSample:
    sample = {"__key__": key.encode()}
    for member in members:
        suffix = base_plus_ext(member.name)[1]
        if suffix in suffixes:
            sample[suffix] = _content(archive, member)
    return sample


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if not member.isreg() or member.size > MAX_MEMBER_BYTES:
        raise tarfile.ReadError(f"'{member.name}' is not a file of at most {MAX_MEMBER_BYTES} B")
    stream = archive.extractfile(member)
    content = stream.read() if stream else b""
    if len(content) != member.size:
        raise tarfile.ReadError(f"'{member.name}' is cut off")
    return content
