"""The shards of all splits, written by webdataset's own `TarWriter`."""

import contextlib
import hashlib
import io
import tarfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from webdataset import TarWriter

from manymatch.shards.index import Split
from manymatch.shards.sample import Sample, encode
from manymatch.util.files import sync

_WRITE_BYTES = 2**20  # bytes that go to the operating system at once
_UNDIVIDED = 2**30  # bytes of a member up to which `tarfile` does not copy the member in pieces


class ShardWriter:
    """Writes the images of all splits to tar files, one file of a split after another.

    Equal samples give equal bytes: the tar files hold no times, users and groups. A thread moves
    finished files to the disk, so that the next file does not wait for the disk. `hashes` gets the
    SHA-256 of each finished shard.
    """

    def __init__(self, folder: Path, images_per_shard: int, hashes: dict[str, str]) -> None:
        self._folder, self._images_per_shard, self._hashes = folder, images_per_shard, hashes
        self._images: dict[str, dict[str, int]] = {}
        """The images of each shard of each split."""
        self._captions: Counter[str] = Counter()
        self._tars: dict[str, TarWriter] = {}
        self._synced: list[Future[None]] = []
        self._all = contextlib.ExitStack()
        self._syncing = self._all.enter_context(ThreadPoolExecutor(1))
        self._open: dict[str, contextlib.ExitStack] = {}

    def write(self, split: str, number: int, sample: Sample) -> None:
        """Add an image to the shard that its `number` in the split belongs to.

        The numbers of a split must be ascending.
        """
        images = self._images.setdefault(split, {})
        shard = f"{split}-{number // self._images_per_shard:06d}.tar"
        if shard not in images:
            if split not in self._open:
                self._open[split] = self._all.enter_context(contextlib.ExitStack())
            self._open[split].close()
            images[shard] = 0
            tar = self._tar_file(self._folder / shard)
            self._tars[split] = self._open[split].enter_context(tar)
        self._tars[split].write({"__key__": sample.key, **encode(sample)})
        images[shard] += 1
        self._captions[split] += len(sample.captions)

    def close(self) -> None:
        """Finish the last shards, and wait until all shards are on the disk."""
        self._all.close()
        for synced in self._synced:
            synced.result()

    def splits(self) -> dict[str, Split]:
        """The entries of the index, after `close`."""
        return {
            split: Split(
                shards=list(images),
                shard_images=list(images.values()),
                images=sum(images.values()),
                captions=self._captions[split],
            )
            for split, images in self._images.items()
        }

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
