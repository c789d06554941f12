"""The stage `shards`: features, captions and graphs of each image in WebDataset tar files."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from webdataset import TarWriter

from manymatch.errors import DataError
from manymatch.features.store import FeatureStore
from manymatch.files import replacing, sha256, write_json
from manymatch.progress import track
from manymatch.shards.index import NAME, Index, Split
from manymatch.shards.sample import Sample, encode
from manymatch.shards.tables import Image, image_ids, read_images
from manymatch.shards.thumbnail import thumbnail as thumbnail_of

_BLOCK = 64  # images whose features are read at once


def write_shards(
    captions: Path,
    graphs: Path,
    store: Path,
    raw: Path,
    folder: Path,
    images_per_shard: int,
    thumbnail: int,
) -> None:
    """Write `folder` whole: `SPLIT-%06d.tar` in table order, and `index.json`.

    Equal inputs give equal bytes. Memory does not grow with the images' features.

    Args:
        captions, graphs: the two tables, row by row about the same captions.
        store: HDF5 feature store that holds exactly the images of the caption table.
        raw: folder that the table's image files are relative to, for thumbnails; where a file
            is not there (published features), its image has none.
        images_per_shard: so many but in the last shard of a split.
        thumbnail: longest side of the thumbnails in pixels.

    Raises:
        DataError: tables and store do not belong together, or hold what networks cannot take.
    """
    wanted = image_ids(captions)
    with FeatureStore(store) as features, replacing(folder) as partial:
        rows = _rows(wanted, captions, features.image_ids, store)
        partial.mkdir()
        images = track(read_images(captions, graphs), f"shards {folder}", total=len(wanted))
        with contextlib.closing(_Writers(partial, images_per_shard)) as writers:
            for image, sample in _samples(images, features, rows):
                small = thumbnail_of(raw, image.file, thumbnail)
                writers[image.split].write(replace(sample, thumbnail=small))
        index = Index(
            dataset=captions.stem,
            features=store.stem,
            width=features.width,
            max_regions=features.max_regions,
            dtype=features.dtype,
            boxes=features.has_boxes,
            attributes=features.attributes,
            splits={name: writer.summary() for name, writer in writers.items()},
        )
        write_json(partial / NAME, index.model_dump())


def _rows(wanted: Sequence[str], table: Path, stored: Sequence[str], store: Path) -> dict[str, int]:
    """Image id -> row of the store; table and store must name the same images."""
    if not wanted:
        raise DataError(f"{table}: no captions; run the stage 'captions' again")
    rows = {image_id: row for row, image_id in enumerate(stored)}
    known = set(wanted)
    for images, where in (
        ([name for name in wanted if name not in rows], f"in {table} but not in {store}"),
        ([name for name in stored if name not in known], f"in {store} but not in {table}"),
    ):
        if images:
            raise DataError(
                f"{len(images)} images are {where}, such as '{images[0]}'; "
                "run the stage 'features' again"
            )
    return rows


def _samples(
    images: Iterable[Image], features: FeatureStore, rows: dict[str, int]
) -> Iterator[tuple[Image, Sample]]:
    """Each image with its regions; the store is read a block of images at a time."""
    images = iter(images)
    while block := list(itertools.islice(images, _BLOCK)):
        arrays, counts, boxes = features.read([rows[image.image_id] for image in block])
        for number, (image, count) in enumerate(zip(block, counts.tolist(), strict=True)):
            yield (
                image,
                Sample(
                    key="",
                    image_id=image.image_id,
                    file=image.file,
                    labels=image.labels,
                    captions=image.captions,
                    features=arrays[number, :count],
                    boxes=None if boxes is None else boxes[number, :count].astype("<f4"),
                ),
            )


class _Writers(dict[str, "_SplitWriter"]):
    """One writer per split, made when its first image comes."""

    def __init__(self, folder: Path, images_per_shard: int) -> None:
        super().__init__()
        self._folder = folder
        self._images_per_shard = images_per_shard

    def __missing__(self, split: str) -> _SplitWriter:
        self[split] = writer = _SplitWriter(self._folder, split, self._images_per_shard)
        return writer

    def close(self) -> None:
        for writer in self.values():
            writer.close()


class _SplitWriter:
    """Fills the shards of one split, one after another."""

    def __init__(self, folder: Path, split: str, images_per_shard: int) -> None:
        self._folder = folder
        self._split = split
        self._images_per_shard = images_per_shard
        self._shards: list[str] = []
        self._images = self._captions = 0
        self._open = contextlib.ExitStack()

    def write(self, sample: Sample) -> None:
        """Add an image; its number in the split becomes its key."""
        if self._images % self._images_per_shard == 0:
            self._start_shard()
        self._tar.write(encode(replace(sample, key=f"{self._images:08d}")))
        self._images += 1
        self._captions += len(sample.captions)

    def _start_shard(self) -> None:
        self.close()
        self._shards.append(f"{self._split}-{len(self._shards):06d}.tar")
        stream = self._open.enter_context((self._folder / self._shards[-1]).open("wb"))
        # No time, user or group: equal inputs give equal bytes.
        tar = TarWriter(stream, encoder=False, mtime=0, user="", group="")
        self._tar = self._open.enter_context(tar)

    def close(self) -> None:
        self._open.close()

    def summary(self) -> Split:
        """The split's entry of the index, once it is closed."""
        whole, rest = divmod(self._images, self._images_per_shard)
        return Split(
            shards=self._shards,
            shard_images=[self._images_per_shard] * whole + [rest] * bool(rest),
            sha256=[sha256(self._folder / name) for name in self._shards],
            images=self._images,
            captions=self._captions,
        )
