"""The training batches of one process, epoch after epoch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manymatch.config.preset import Preset
from manymatch.shards.batch import Batch
from manymatch.shards.loader import Loader
from manymatch.shards.read import Batches, batches, classes_of
from manymatch.text.wordpieces import AnyVocabulary

_MOST_WORKERS = 4


@dataclass(frozen=True)
class Data:
    """The data of a training: a folder of shards, and the vocabulary that numbers captions."""

    shards: Path
    vocabulary: AnyVocabulary


class TrainingBatches:
    """The batches of process `rank` of `world` processes, in the order of `epoch`.

    The training loop sets `epoch`. The preset's `images_per_batch` counts the images of all
    processes together, so that a preset means the same on any number of GPUs. The last batch of an
    epoch is left out unless it is full.
    """

    def __init__(
        self, preset: Preset, data: Data, rank: int = 0, world: int = 1, gpu: bool = False
    ) -> None:
        self._preset = preset
        self._data = data
        self._rank = rank
        self._world = world
        self._gpu = gpu
        self.epoch = 0
        one_per_class = preset.training.one_per_class
        self._classes = classes_of(data.shards, "train") if one_per_class else None
        self._length = len(self._of_epoch())

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Batch]:
        workers = _workers(self._world) if self._gpu else 0
        yield from Loader(self._of_epoch(), workers, pin_memory=self._gpu)

    def _of_epoch(self) -> Batches:
        training = self._preset.training
        return batches(
            self._data.shards,
            "train",
            self._data.vocabulary,
            training.images_per_batch // self._world,
            captions_per_image=training.captions_per_image,
            augmentation=self._preset.augmentation,
            shuffle=(self._preset.seed, self.epoch),
            rank=self._rank,
            world=self._world,
            drop_last=True,
            classes=self._classes,
        )


def _workers(world: int) -> int:
    """The number of processes that prepare batches for each of `world` GPUs."""
    return max(1, min(_MOST_WORKERS, (os.cpu_count() or 1) // world))
