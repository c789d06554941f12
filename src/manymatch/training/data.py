"""The training batches of one process, epoch after epoch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from manymatch.batch.batch import Batch
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Preset
from manymatch.methods import check_model, method_class
from manymatch.results.machine import free_memory
from manymatch.shards.loader import Loader
from manymatch.shards.memory import FeatureMemory
from manymatch.shards.read import Batches, batches, classes_of, read_index
from manymatch.training.helpers import first_process
from manymatch.util.errors import ConfigError
from manymatch.util.prefetch import map_ahead
from manymatch.util.progress import say

_MOST_WORKERS = 8
_FREE_SHARE = 4
"""`features_in: auto` takes at most one part in so many of what is free."""
_WORTH_A_LINE = 10**9


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

    Args:
        device: the device that trains.
        here: number of the processes on this host.
    """

    def __init__(
        self,
        preset: Preset,
        data: Data,
        rank: int = 0,
        world: int = 1,
        device: torch.device | str = "cpu",
        here: int = 1,
    ) -> None:
        self._preset = preset
        self._data = data
        self._rank = rank
        self._world = world
        settings = check_model(preset.method, preset.model)
        self._graphs = method_class(preset.method).graph_reader(settings)
        self.epoch = 0
        one_per_class = preset.training.one_per_class
        self._classes = classes_of(data.shards, "train") if one_per_class else None
        self._device = torch.device(device)
        self._memory = features_memory(preset, data.shards, self._device, here)
        self._length = -(-len(self._epoch_batches(0)) // preset.training.accumulate)
        gpu = self._device.type != "cpu"
        self._loader = Loader(self._epoch_batches, _workers(here) if gpu else 0, pin_memory=gpu)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[Batch, ...]]:
        """Each batch on the device, in as many parts as `training.accumulate` says."""
        with contextlib.closing(self._moved()) as stream:
            while parts := tuple(islice(stream, self._preset.training.accumulate)):
                yield parts

    def _moved(self) -> Generator[Batch, None, None]:
        """The parts of all batches of the epoch, on the device.

        Beside a GPU a thread fills and copies the next part. The copy has a stream of its own, so
        that the GPU computes in the meantime.
        """
        fill = self._memory.fill if self._memory else lambda batch: batch
        stream = self._loader.epoch(self.epoch)
        if self._device.type == "cpu":
            for batch in stream:
                yield fill(batch).to(self._device)
            return
        computing = torch.cuda.current_stream(self._device)
        copying = torch.cuda.Stream(self._device)
        copying.wait_stream(computing)

        def copied(batch: Batch) -> tuple[Batch, torch.cuda.Event]:
            with torch.cuda.stream(copying):
                return fill(batch).to(self._device), copying.record_event()

        with contextlib.closing(map_ahead(copied, stream, 1)) as parts:
            for batch, arrived in parts:
                computing.wait_event(arrived)
                for tensor in batch.tensors():
                    tensor.record_stream(computing)
                yield batch

    def _epoch_batches(self, epoch: int) -> Batches:
        training = self._preset.training
        return batches(
            self._data.shards,
            "train",
            self._data.vocabulary,
            training.images_per_batch // self._world,
            captions_per_image=training.captions_per_image,
            augmentation=self._preset.augmentation,
            shuffle=(self._preset.seed, epoch),
            rank=self._rank,
            world=self._world,
            drop_last=True,
            parts=training.accumulate,
            classes=self._classes,
            held=self._memory.samples if self._memory else None,
            graphs=self._graphs,
        )


def features_memory(
    preset: Preset, shards: Path, device: torch.device, here: int
) -> FeatureMemory | None:
    """The features in memory, if the preset asks for them or if they fit.

    Raises:
        ConfigError: the preset asks for them, and they do not fit.
    """
    setting, index = preset.training.features_in, read_index(shards)
    needed = index.sample_bytes * index.split("train").images
    free = {"device": torch.cuda.mem_get_info(device)[0]} if device.type == "cuda" else {}
    free["memory"] = free_memory() // here
    if setting == "auto":
        fitting = [place for place in free if needed <= free[place] // _FREE_SHARE]
        place = fitting[0] if fitting else "shards"
    else:
        place = "memory" if setting == "device" and device.type == "cpu" else setting
    if place == "shards":
        return None
    if needed > free[place]:
        raise ConfigError(
            f"training.features_in: {setting}: the features of {shards} take {needed / 1e9:.1f} GB "
            f"in each process, but {free[place] / 1e9:.1f} GB are free. Set it to shards."
        )
    if needed >= _WORTH_A_LINE and first_process():
        kept = "on each GPU" if place == "device" else "in the memory of each process"
        say(f"features of {shards}: {needed / 1e9:.1f} GB {kept}")
    where = device if place == "device" else "cpu"
    return FeatureMemory(shards, "train", where, pinned=device.type == "cuda")


def _workers(here: int) -> int:
    """The number of processes that prepare batches for each of the `here` GPUs of this host."""
    return max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) // here))
