"""Batches from shards: the same ones whoever reads them, with however many processes or workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from torch.utils.data import IterableDataset, get_worker_info

from manymatch.config.preset import Augmentation
from manymatch.shards.batch import Batch
from manymatch.shards.collate import collate
from manymatch.shards.fetch import fetch
from manymatch.shards.index import Index, read_index
from manymatch.shards.order import (
    BUFFER_BYTES,
    batches_of,
    image_order,
    one_per_class,
    shard_order,
)
from manymatch.shards.prepare import Preparation
from manymatch.shards.sample import BOXES, FEATURES, JSON, THUMBNAIL, Sample, decode, labels_of
from manymatch.shards.tar import RawSample
from manymatch.system.errors import DataError
from manymatch.text.wordpieces import AnyVocabulary

__all__ = ["Batches", "Index", "batches", "classes_of", "read_index", "samples"]


def samples(folder: Path, split: str, rows: Iterable[int] | None = None) -> Iterator[Sample]:
    """Images of a split as stored, thumbnails included: all, or those at `rows` of its order."""
    index = read_index(folder)
    shards = index.split(split)
    wanted = range(shards.images) if rows is None else rows
    order = shard_order(len(shards.shards), None)
    for _, raw in fetch(folder, shards, order, wanted, {JSON, FEATURES, BOXES, THUMBNAIL}):
        yield decode(raw, index.width, f"{folder} ({split})", index.dtype)


def classes_of(folder: Path, split: str) -> np.ndarray:
    """(images,) the class of each image of a split in table order; each must have exactly one."""
    index = read_index(folder)
    shards = index.split(split)
    order = shard_order(len(shards.shards), None)
    classes = []
    for _, raw in fetch(folder, shards, order, range(shards.images), {JSON}):
        image_id, labels = labels_of(raw, f"{folder} ({split})")
        if len(labels) != 1:
            raise DataError(
                f"{folder} ({split}): image '{image_id}' has {len(labels)} classes, and "
                "training.one_per_class needs exactly one"
            )
        classes += labels
    return np.array(classes)


def batches(
    folder: Path,
    split: str,
    vocabulary: AnyVocabulary,
    images_per_batch: int,
    *,
    captions_per_image: int | None = None,
    augmentation: Augmentation | None = None,
    shuffle: tuple[int, int] | None = None,
    rank: int = 0,
    world: int = 1,
    drop_last: bool = False,
    classes: np.ndarray | None = None,
) -> Batches:
    """The batches of one epoch of a split.

    Args:
        captions_per_image: so many are drawn of each image's; None takes all.
        augmentation: what is dropped; needs `shuffle`, which seeds it.
        shuffle: (seed, epoch); None keeps table order. Order, drawn captions and augmentation
            depend on it and on the image alone.
        rank, world: this process of so many. Together their i-th batches are the i-th batch of
            one process with `world * images_per_batch` images.
        drop_last: leave out a last batch that is not full, unless it is the only one.
        classes: (images,) of each image in table order (`classes_of`): no two images of a batch
            are of one class, and images for which no full batch is left are left out.

    Raises:
        DataError: there are fewer `classes` than images in a batch.
    """
    if shuffle is None and not (captions_per_image is None and augmentation is None):
        raise ValueError("captions are drawn and augmented from a seed: give `shuffle`")
    index = read_index(folder)
    shards = index.split(split)
    order = image_order(shards.images, max(1, BUFFER_BYTES // index.sample_bytes), shuffle)
    reading = shard_order(len(shards.shards), shuffle)
    if classes is not None:
        rows = np.split(np.arange(shards.images), np.cumsum(shards.shard_images)[:-1])
        in_stream = classes[np.concatenate([rows[shard] for shard in reading])]
        order = one_per_class(order, in_stream, images_per_batch * world)
        if not len(order):
            raise DataError(
                f"{folder} ({split}): {len(set(classes.tolist()))} classes, fewer than the "
                f"{images_per_batch * world} images of a batch with one of each; lower "
                "training.images_per_batch"
            )
    return Batches(
        folder=folder,
        split=split,
        index=index,
        shards=reading,
        plan=batches_of(order, images_per_batch, rank, world, drop_last),
        prepare=Preparation(vocabulary, captions_per_image, augmentation, shuffle),
    )


class Batches(IterableDataset[Batch]):
    """One epoch's batches; `plan` names the positions of each in the stream of `shards`.

    Workers of a `DataLoader` take turns, so that the batches do not change with their number.
    """

    def __init__(
        self,
        folder: Path,
        split: str,
        index: Index,
        shards: Sequence[int],
        plan: Sequence[np.ndarray],
        prepare: Preparation,
    ) -> None:
        self._folder = folder
        self._split = split
        self._index = index
        self._shards = shards
        self._plan = plan
        self._prepare = prepare

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        plan = self._plan[worker.id :: worker.num_workers] if worker else self._plan
        fetched = self._fetch(position for positions in plan for position in positions.tolist())
        held: dict[int, RawSample] = {}  # the shuffle buffer
        for positions in plan:
            missing = set(positions.tolist()) - held.keys()
            while missing:
                position, raw = next(fetched)
                held[position] = raw
                missing.discard(position)
            yield self._collate([held.pop(position) for position in positions.tolist()])

    def _fetch(self, positions: Iterable[int]) -> Iterator[tuple[int, RawSample]]:
        split = self._index.split(self._split)
        return fetch(self._folder, split, self._shards, positions, {JSON, FEATURES, BOXES})

    def _collate(self, samples: Iterable[RawSample]) -> Batch:
        where, index = f"{self._folder} ({self._split})", self._index
        decoded = (decode(raw, index.width, where, index.dtype) for raw in samples)
        return collate([self._prepare(sample) for sample in decoded])
