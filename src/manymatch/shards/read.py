"""Batches from shards, which worker processes can prepare while the network trains.

The batches do not depend on the number of processes and workers that read.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from manymatch.batch.batch import Batch
from manymatch.batch.collate import collate
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Augmentation
from manymatch.scene_graphs.verbs import GraphReader, as_parsed
from manymatch.shards.fetch import RawSample, check_shards, fetch
from manymatch.shards.index import Index, Split, read_index
from manymatch.shards.order import BUFFER_BYTES, batches_of, image_order, one_per_class, shard_order
from manymatch.shards.prepare import Preparation
from manymatch.shards.sample import BOXES, FEATURES, JSON, THUMBNAIL, Sample, decode, labels_of
from manymatch.util.errors import DataError, ManyMatchError


def samples(
    folder: Path,
    split: str,
    rows: Iterable[int] | None = None,
    graphs: GraphReader = as_parsed,
) -> Iterator[Sample]:
    """The images of a split with thumbnails, in table order: all, or those in the given `rows`.

    `graphs` reads the parsed scene graphs of the captions.
    """
    index, where = read_index(folder), f"{folder} ({split})"
    for raw in _raw_samples(folder, split, {JSON, FEATURES, BOXES, THUMBNAIL}, rows):
        yield decode(raw, index.width, where, index.dtype, graphs=graphs)


def _raw_samples(
    folder: Path, split: str, suffixes: Set[str], rows: Iterable[int] | None = None
) -> Iterator[RawSample]:
    shards = read_index(folder).split(split)
    order = shard_order(len(shards.shards), None)
    selected = range(shards.images) if rows is None else rows
    for _, raw in fetch(folder, shards, order, selected, suffixes):
        yield raw


def caption_texts(folder: Path) -> Iterator[str]:
    """The captions of all splits."""
    for split in read_index(folder).splits:
        for raw in _raw_samples(folder, split, {JSON}):
            yield from labels_of(raw, f"{folder} ({split})")[2]


def image_ids(folder: Path, split: str) -> list[str]:
    """The ids of the images of a split, in table order."""
    return [labels_of(raw, f"{folder} ({split})")[0] for raw in _raw_samples(folder, split, {JSON})]


def classes_of(folder: Path, split: str) -> np.ndarray:
    """(images,) the class of every image of a split, in table order.

    Raises:
        DataError: an image has no class or several.
    """
    classes: list[int] = []
    for raw in _raw_samples(folder, split, {JSON}):
        image_id, labels, _ = labels_of(raw, f"{folder} ({split})")
        if len(labels) != 1:
            raise DataError(
                f"{folder} ({split}): image '{image_id}' has {len(labels)} classes, and "
                "training.one_per_class needs exactly one. Turn this setting off"
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
    parts: int = 1,
    classes: np.ndarray | None = None,
    held: Sequence[RawSample] | None = None,
    graphs: GraphReader | None = as_parsed,
    fraction: float = 1.0,
) -> "Batches":
    """The batches of one epoch of a split.

    Args:
        captions_per_image: number of captions drawn for every image; None takes all.
        augmentation: what is dropped. Requires `shuffle`, which seeds the draws.
        shuffle: (seed, epoch); None keeps table order. The order, the drawn captions and the
            augmentation depend only on `shuffle` and on the image.
        rank, world: number of this process, and number of processes. Together, the i-th batches of
            all processes are the i-th batch of one process with `world * images_per_batch` images.
        drop_last: leave out an incomplete last batch, unless it is the only one.
        parts: each batch comes in so many parts, one after another, or in one for each image.
        classes: (images,) class of every image in table order (`classes_of`). Two images of a batch
            then never have the same class. Images that do not fit in a full batch are left out.
        held: `FeatureMemory.samples` of the split, which are then not read from the shards.
        graphs: what is made of the parsed scene graphs; None: the batches contain no graphs.
        fraction: the share of the images that are in the epoch, at least 2. The seed of `shuffle`
            draws them, the same in each epoch.

    Raises:
        DataError: there are fewer `classes` than images in a batch, or a shard is damaged.
    """
    if shuffle is None and not (captions_per_image is None and augmentation is None):
        raise ValueError("drawing and augmenting captions requires a seed: pass `shuffle`")
    index = read_index(folder)
    shards = index.split(split)
    order = image_order(shards.images, max(1, BUFFER_BYTES // index.sample_bytes), shuffle)
    reading = shard_order(len(shards.shards), shuffle)
    rows = np.split(np.arange(shards.images), np.cumsum(shards.shard_images)[:-1])
    table_rows = np.concatenate([rows[shard] for shard in reading])  # of the stream's positions
    if fraction < 1 and shuffle is not None:
        count = max(2, round(fraction * shards.images))
        drawn = Random(f"fraction {shuffle[0]}").sample(range(shards.images), count)
        order = order[np.isin(table_rows[order], drawn)]
    if classes is not None:
        all_in_order = order
        order = one_per_class(order, classes[table_rows], images_per_batch * world)
        if not len(order):
            different = len(set(classes[table_rows[all_in_order]].tolist()))
            raise DataError(
                f"{folder} ({split}): the images have {different} classes, fewer than the "
                f"{images_per_batch * world} images of a batch with one of each. Lower "
                "training.images_per_batch, or raise training.fraction"
            )
    if held is not None:
        order = table_rows[order]
    return Batches(
        folder=folder,
        index=index,
        split=shards,
        where=f"{folder} ({split})",
        shards=reading,
        plan=[
            part
            for rows in batches_of(order, images_per_batch, rank, world, drop_last)
            for part in np.array_split(rows, min(parts, len(rows)))
        ],
        held=held,
        graphs=graphs,
        prepare=Preparation(vocabulary, captions_per_image, augmentation, shuffle),
    )


@dataclass(eq=False)
class Batches(IterableDataset[Batch]):
    """The batches of one epoch.

    The workers of a `DataLoader` take turns, so that the batches do not depend on their number.
    """

    folder: Path
    index: Index
    split: Split
    where: str
    """The folder and the split, for errors."""
    shards: Sequence[int]
    """The numbers of the shards in reading order."""
    plan: Sequence[np.ndarray]
    """For every batch, the positions of its images in the stream of the shards or in `held`."""
    held: Sequence[RawSample] | None
    """The samples of all images; None: the shards are read."""
    graphs: GraphReader | None
    prepare: Preparation

    def __len__(self) -> int:
        return len(self.plan)

    def part(self, rank: int, world: int) -> "Batches":
        """The batches of process `rank` of `world`, which divide them in order."""
        count = len(self)
        return replace(self, plan=self.plan[count * rank // world : count * (rank + 1) // world])

    def check_shards(self) -> None:
        """Compare the hashes of all shards with the index, before workers read the shards."""
        check_shards(self.folder, self.split)

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        plan = self.plan[worker.id :: worker.num_workers] if worker else self.plan
        if self.held is not None:
            for rows in plan:
                yield self._collate([self.held[row] for row in rows])
            return
        left = Counter(position for rows in plan for position in rows.tolist())
        suffixes = {JSON, FEATURES, BOXES}
        fetched = fetch(self.folder, self.split, self.shards, left, suffixes)
        held: dict[int, RawSample] = {}  # the shuffle buffer
        for rows in plan:
            missing = set(rows.tolist()) - held.keys()
            while missing:
                position, raw = next(fetched)
                held[position] = raw
                missing.discard(position)
            left.subtract(rows.tolist())
            yield self._collate(
                [held[row] if left[row] else held.pop(row) for row in rows.tolist()]
            )

    def _collate(self, samples: Iterable[RawSample]) -> Batch:
        items = []
        width = self.index.width if self.held is None else 0  # held samples have no features
        for raw in samples:
            rng = self.prepare.generator_for(raw["__key__"].decode())
            draw = partial(self.prepare.draw, rng=rng)
            sample = decode(raw, width, self.where, self.index.dtype, draw, self.graphs)
            items.append(self.prepare(sample, rng))
        return collate(items)


class Loader:
    """The batches of epoch after epoch, prepared by `workers` processes (0: by this process).

    The workers live as long as the loader: starting them takes as long as many batches. With
    `pin_memory` copies to a GPU are faster.
    """

    def __init__(
        self, batches: Callable[[int], Batches], workers: int = 0, pin_memory: bool = False
    ) -> None:
        self._epochs = _Epochs(batches)
        self._loader = DataLoader(
            self._epochs,
            batch_size=None,
            num_workers=workers,
            multiprocessing_context="fork" if workers else None,
            pin_memory=pin_memory,
            prefetch_factor=2 if workers else None,
            persistent_workers=bool(workers),
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        if self._loader.num_workers:
            self._epochs.batches(number).check_shards()
        self._epochs.number.fill_(number)
        for batch in self._loader:
            if isinstance(batch, ManyMatchError):
                raise batch
            yield batch


class _Epochs(IterableDataset[Batch | ManyMatchError]):
    """The batches of the epoch `number`, which the workers share with the training process.

    It yields our errors as values: an error that a worker raises would arrive as a traceback.
    """

    def __init__(self, batches: Callable[[int], Batches]) -> None:
        self.batches = batches
        self.number = torch.zeros((), dtype=torch.int64).share_memory_()

    def __iter__(self) -> Iterator[Batch | ManyMatchError]:
        if get_worker_info():
            gc.freeze()  # else each collection searches what the worker has of the training process
        try:
            yield from self.batches(int(self.number))
        except ManyMatchError as error:
            yield error
