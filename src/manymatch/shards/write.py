"""The stage `shards`: features, captions and graphs of each image in WebDataset tar files."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import PIL

from manymatch.features.store import FeatureStore, Rows
from manymatch.shards.background_writer import Disk, WrittenAside
from manymatch.shards.index import NAME, Index, Split
from manymatch.shards.joining import join
from manymatch.shards.pack import Pack
from manymatch.shards.sample import Sample, encode
from manymatch.shards.tables import Image, distinct, read_images
from manymatch.shards.thumbnail import Pictures
from manymatch.system.code_hash import code_hash
from manymatch.system.errors import DataError
from manymatch.system.files import replacing, sha256, write_json
from manymatch.system.parts import WHOLE, Part, Parts, identity_of
from manymatch.system.prefetch import ahead
from manymatch.system.progress import track

_BLOCK = 16  # images whose features are read at once


def write_shards(
    captions: Path,
    graphs: Path,
    store: Path,
    raw: Path,
    folder: Path,
    images_per_shard: int,
    thumbnail: int,
    *,
    parts: Parts,
) -> None:
    """Write `folder` whole, or one of its `parts`: `SPLIT-%06d.tar` in table order, and
    `index.json`.

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
    images = distinct(captions, "image_id")
    with FeatureStore(store) as features:
        rows = _rows(images, captions, features.image_ids, store)
        pictures = Pictures(raw)
        shards = _Shards(captions, graphs, features, rows, pictures, images_per_shard, thumbnail)

        @functools.cache
        def identity() -> str:
            return _identity(shards)

        if parts.wanted:
            with parts.making(lambda part: identity()) as path:
                if path:
                    shards.write(path, parts.wanted)
            return
        with parts.joining(lambda part: identity()) as joined:
            if joined:
                join(joined, folder)
            else:
                shards.write(folder, WHOLE)


def _identity(shards: _Shards) -> str:
    """Of all parts the same: it tells what all shards are made from. Pictures are known by their
    size, as they decide nothing but thumbnails beside the features."""
    found = map(shards.pictures.path, distinct(shards.captions, "file"))
    return identity_of(
        code_hash(__name__),
        [sha256(shards.captions), sha256(shards.graphs), shards.features.sha256],
        [path and path.stat().st_size for path in found],
        [shards.captions.stem, shards.features.path.stem],
        [shards.images_per_shard, shards.thumbnail, PIL.__version__],
    )


@dataclass(frozen=True)
class _Shards:
    """What the stage's shards are made of; see `write_shards`."""

    captions: Path
    graphs: Path
    features: FeatureStore
    rows: dict[str, int]
    """Of the store, by image id."""
    pictures: Pictures
    images_per_shard: int
    thumbnail: int

    def write(self, folder: Path, part: Part) -> None:
        """Write the shards of one part and their index."""
        with replacing(folder) as partial:
            partial.mkdir()
            images = read_images(self.captions, self.graphs)
            told = track(images, f"shards {folder}", total=len(self.rows))
            chosen = _numbered(told, self.images_per_shard, part)
            with contextlib.closing(_Writers(partial, self.images_per_shard)) as writers:
                for split, sample in _samples(chosen, self.features, self.rows):
                    small = self.pictures.thumbnail(sample.file, self.thumbnail)
                    writers[split].write(replace(sample, thumbnail=small))
            part.refuse_empty(writers, "shards")
            write_json(partial / NAME, self._index(writers).model_dump())

    def _index(self, writers: _Writers) -> Index:
        return Index(
            dataset=self.captions.stem,
            features=self.features.path.stem,
            width=self.features.width,
            max_regions=self.features.max_regions,
            dtype=self.features.dtype,
            boxes=self.features.has_boxes,
            attributes=self.features.attributes,
            splits={name: writer.summary() for name, writer in writers.items()},
        )


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


def _numbered(
    images: Iterable[Image], images_per_shard: int, part: Part
) -> Iterator[tuple[int, Image]]:
    """The images whose shard is in `part`, each with its number in its split."""
    seen: Counter[str] = Counter()
    shards = itertools.count()
    taken: dict[str, bool] = {}
    for image in images:
        number = seen[image.split]
        seen[image.split] += 1
        if number % images_per_shard == 0:
            taken[image.split] = part.takes(next(shards))
        if taken[image.split]:
            yield number, image


def _samples(
    images: Iterable[tuple[int, Image]], features: FeatureStore, rows: dict[str, int]
) -> Iterator[tuple[str, Sample]]:
    """Split and sample of each image, its number in the split being the key."""
    with contextlib.closing(ahead(_with_features(images, features, rows), depth=1)) as blocks:
        for block, (arrays, counts, boxes) in blocks:
            for at, ((number, image), count) in enumerate(zip(block, counts.tolist(), strict=True)):
                yield (
                    image.split,
                    Sample(
                        key=f"{number:08d}",
                        image_id=image.image_id,
                        file=image.file,
                        labels=image.labels,
                        captions=image.captions,
                        features=arrays[at, :count],
                        boxes=None if boxes is None else boxes[at, :count].astype("<f4"),
                    ),
                )


def _with_features(
    images: Iterable[tuple[int, Image]], features: FeatureStore, rows: dict[str, int]
) -> Iterator[tuple[list[tuple[int, Image]], Rows]]:
    """Blocks of images, and what the store has of them."""
    images = iter(images)
    while block := list(itertools.islice(images, _BLOCK)):
        yield block, features.read([rows[image.image_id] for _, image in block])


class _Writers(dict[str, "_SplitWriter"]):
    """One writer per split, made when its first image comes."""

    def __init__(self, folder: Path, images_per_shard: int) -> None:
        super().__init__()
        self._folder = folder
        self._images_per_shard = images_per_shard
        self._disk = Disk()

    def __missing__(self, split: str) -> _SplitWriter:
        self[split] = writer = _SplitWriter(self._folder, split, self._images_per_shard, self._disk)
        return writer

    def close(self) -> None:
        with contextlib.closing(self._disk):
            for writer in self.values():
                writer.close()


class _SplitWriter:
    """Fills the shards of one split, one after another."""

    def __init__(self, folder: Path, split: str, images_per_shard: int, disk: Disk) -> None:
        self._folder = folder
        self._split = split
        self._images_per_shard = images_per_shard
        self._disk = disk
        self._images: dict[str, int] = {}
        """In each shard."""
        self._files: list[WrittenAside] = []
        self._captions = 0
        self._open = contextlib.ExitStack()

    def write(self, sample: Sample) -> None:
        """Add an image to the shard that its key, the number in its split, belongs to."""
        shard = f"{self._split}-{int(sample.key) // self._images_per_shard:06d}.tar"
        if shard not in self._images:
            self._start(shard)
        self._pack.write(sample.key, encode(sample))
        self._images[shard] += 1
        self._captions += len(sample.captions)

    def _start(self, shard: str) -> None:
        self.close()
        self._images[shard] = 0
        self._files.append(self._disk.file(self._folder / shard))
        self._pack = self._open.enter_context(contextlib.closing(Pack(self._files[-1])))

    def close(self) -> None:
        self._open.close()

    def summary(self) -> Split:
        """The split's entry of the index, once it is closed."""
        return Split(
            shards=list(self._images),
            shard_images=list(self._images.values()),
            sha256=[file.sha256() for file in self._files],
            images=sum(self._images.values()),
            captions=self._captions,
        )
