"""The shards of one split, written by webdataset's own `TarWriter`."""

from __future__ import annotations

import contextlib
import hashlib
import io
import tarfile
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from webdataset import TarWriter

from manymatch.shards.index import Split
from manymatch.shards.sample import Sample, encode
from manymatch.util.files import sync

_WRITE_BYTES = 2**20  # bytes that go to the operating system at once
_UNDIVIDED = 2**30  # bytes of a member up to which `tarfile` does not copy the member in pieces


class SplitWriter:
    """Writes the images of one split to tar files, one file after another.

    Equal samples give equal bytes: the tar files hold no times, users and groups.

    Args:
        syncing: the executor that moves finished files to the disk, so that the next file does not
            wait for the disk.
        hashes: gets the SHA-256 of each finished shard.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        images_per_shard: int,
        syncing: Executor,
        hashes: dict[str, str],
    ) -> None:
        self._folder = folder
        self._split = split
        self._images_per_shard = images_per_shard
        self._syncing = syncing
        self._synced: list[Future[None]] = []
        self._shard_images: dict[str, int] = {}
        self._hashes = hashes
        self._captions = 0
        self._open = contextlib.ExitStack()

    def write(self, number: int, sample: Sample) -> None:
        """Add an image to the shard that its `number` in the split belongs to.

        The numbers must be ascending.
        """
        shard = f"{self._split}-{number // self._images_per_shard:06d}.tar"
        if shard not in self._shard_images:
            self._open.close()
            self._shard_images[shard] = 0
            self._tar = self._open.enter_context(self._tar_file(self._folder / shard))
        self._tar.write({"__key__": sample.key, **encode(sample)})
        self._shard_images[shard] += 1
        self._captions += len(sample.captions)

    def close(self) -> None:
        """Finish the last shard, and wait until all shards are on the disk."""
        self._open.close()
        for synced in self._synced:
            synced.result()

    def summary(self) -> Split:
        """The entry of the index for the split, after `close`."""
        return Split(
            shards=list(self._shard_images),
            shard_images=list(self._shard_images.values()),
            images=sum(self._shard_images.values()),
            captions=self._captions,
        )

    @contextlib.contextmanager
    def _tar_file(self, path: Path) -> Iterator[TarWriter]:
        hashed = _HashedFile(path, "w")
        with (
            io.BufferedWriter(hashed, _WRITE_BYTES) as file,
            TarWriter(file, encoder=False, mtime=0, user="", group="") as tar,
        ):
            # The stream that TarWriter opens copies everything again in pieces of 10 KiB.
            tar.tarstream = tarfile.TarFile(
                fileobj=file, mode="w", format=tarfile.USTAR_FORMAT, copybufsize=_UNDIVIDED
            )
            yield tar
        self._hashes[path.name] = hashed.digest.hexdigest()
        self._synced.append(self._syncing.submit(sync, path))


class _HashedFile(io.FileIO):
    """A file that computes the SHA-256 of the bytes that are written to it."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        count = super().write(data)
        self.digest.update(memoryview(data)[:count])
        return count
