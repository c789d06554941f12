"""The training batches of one process, epoch after epoch."""

import contextlib
import math
import os
import socket
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from manymatch.batch.batch import Batch
from manymatch.batch.padding import OnDevice
from manymatch.batch.shared_rows import world_size
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Preset
from manymatch.methods import check_model, method_class
from manymatch.results.machine import free_memory
from manymatch.scene_graphs.verbs import GraphReader
from manymatch.shards.memory import FeatureMemory
from manymatch.shards.read import Batches, Loader, batches, classes_of, read_index
from manymatch.training.helpers import first_process
from manymatch.training.true_pairs import TruePairs
from manymatch.util.errors import ConfigError
from manymatch.util.prefetch import map_ahead
from manymatch.util.progress import say

_MOST_WORKERS = 8
_FREE_SHARE = 4
"""`features_in: auto` takes at most one part in so many of what is free."""
_WORTH_A_LINE = 10**9
SHARED = hasattr(os, "memfd_create")
"""Whether processes can share memory without a name; on Linux."""


@dataclass(frozen=True)
class Data:
    """The data of a training: a folder of shards, the vocabulary that numbers captions, and what
    the losses leave out with `training.negatives: oracle`."""

    shards: Path
    vocabulary: AnyVocabulary
    true_pairs: TruePairs | None = None


class TrainingBatches:
    """The batches of process `rank` of `world` processes, in the order of `epoch`.

    The training loop sets `epoch`. The preset's `images_per_batch` counts the images of all
    processes together, so that a preset means the same on any number of GPUs. The last batch of an
    epoch is left out unless it is full.

    `device` trains, and `here` is the number of the processes on this host. More processes than
    images are a `ConfigError`.
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
        training, self._device = preset.training, torch.device(device)
        settings = check_model(preset.method, preset.model)
        graphs = method_class(preset.method).graph_reader(settings)
        classes = classes_of(data.shards, "train") if training.one_per_class else None
        memory = features_memory(preset, data.shards, self._device, here)

        # Without `self`: the workers of a loader that belongs to a cycle end after five seconds.
        def epoch_batches(epoch: int) -> Batches:
            return batches(
                data.shards,
                "train",
                data.vocabulary,
                training.images_per_batch // world,
                captions_per_image=training.captions_per_image,
                augmentation=preset.augmentation,
                shuffle=(preset.seed, epoch),
                rank=rank,
                world=world,
                drop_last=True,
                parts=training.accumulate,
                classes=classes,
                held=memory.samples if memory else None,
                graphs=graphs,
                fraction=training.fraction,
            )

        self.epoch = 0
        self._memory, self._parts, self._true_pairs = memory, training.accumulate, data.true_pairs
        self._length = -(-len(epoch_batches(0)) // training.accumulate)
        if not self._length:
            raise ConfigError(
                f"training: {data.shards}: too few images for a batch of {world} processes. Raise "
                "training.fraction, or lower training.devices."
            )
        gpu = self._device.type != "cpu"
        self._loader = Loader(epoch_batches, _workers(here) if gpu else 0, pin_memory=gpu)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[Batch, ...]]:
        """Each batch on the device, in as many parts as `training.accumulate` says."""
        with contextlib.closing(self._moved()) as stream:
            while parts := tuple(islice(stream, self._parts)):
                yield parts

    def _moved(self) -> Generator[Batch, None, None]:
        """The parts of all batches of the epoch, on the device.

        Beside a GPU a thread fills and copies the next part. The copy has a stream of its own, so
        that the GPU computes in the meantime.
        """
        memory, true_pairs = self._memory, self._true_pairs

        def fill(batch: Batch) -> Batch:
            batch = memory.fill(batch) if memory else batch
            return true_pairs.numbered(batch) if true_pairs else batch

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


class ValidationBatches:
    """The batches of the split `validation` that process `rank` of `world` embeds.

    The batches are the same in each epoch. So they are read once and kept, on the device or in
    memory, if they fit and unless `training.features_in` is `shards`. Else worker processes prepare
    them for a GPU in each epoch.

    Args:
        preset: the settings of a training; None: the batches are needed once.
        graphs: `Method.read_graph`.

    Attributes:
        shared: whether each process has a part of the batches; else each has all of them.
    """

    def __init__(
        self,
        data: Data,
        images_per_batch: int,
        graphs: GraphReader | None,
        rank: int = 0,
        world: int = 1,
        preset: Preset | None = None,
        device: torch.device | str = "cpu",
        here: int = 1,
    ) -> None:
        shards, words = data.shards, data.vocabulary
        stream = batches(shards, "validation", words, images_per_batch, graphs=graphs)
        self.shared = len(stream) >= world > 1
        if self.shared:
            stream = stream.part(rank, world)
        self._length, self._device, self._place = len(stream), torch.device(device), "shards"
        if preset is not None and preset.training.features_in != "shards":
            free = _free(self._device, here)
            self._place = _place("auto", _needed(shards, "validation"), free)
        self._kept: list[Batch] = []
        gpu = self._device.type != "cpu" and self._place == "shards"
        self._loader = Loader(lambda _: stream, _workers(here) if gpu else 0, pin_memory=gpu)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Batch]:
        if len(self._kept) == self._length:
            yield from self._kept
            return
        self._kept.clear()
        for batch in self._loader.epoch(0):
            if self._place == "device":
                batch = OnDevice.to(batch, self._device)  # features stay in 16 bits
            elif self._place == "memory" and self._device.type == "cuda":
                batch = batch.pin_memory()
            if self._place != "shards":
                self._kept.append(batch)
            yield batch


def features_memory(
    preset: Preset, shards: Path, device: torch.device, here: int
) -> FeatureMemory | None:
    """The features of the training split, if the preset asks for them or if they fit.

    All processes of a training call this function together. On Linux those of a host share the
    memory. There are features in memory only if all processes have room for them. It is a
    `ConfigError` if the preset asks for them and they do not fit.
    """
    setting, needed = preset.training.features_in, _needed(shards, "train")
    free = _free(device, 1 if SHARED else here)
    place = _place(setting, needed, free)
    if needed > free.get(place, needed):
        raise ConfigError(
            f"training.features_in: {setting}: the features of {shards} take "
            f"{needed / 1e9:.1f} GB, but {free[place] / 1e9:.1f} GB are free. Set it to shards."
        )
    places = set(all_of(place))
    if place == "shards" or (place == "memory" and len(places) > 1):
        return None
    if needed >= _WORTH_A_LINE and first_process():
        kept = "on each GPU" if place == "device" else "in memory"
        say(f"features of {shards}: {needed / 1e9:.1f} GB {kept}")
    if place == "device":
        return FeatureMemory(shards, "train", device)
    tensor = host_tensor if SHARED and world_size() > 1 else None
    memory = FeatureMemory(shards, "train", "cpu", device.type == "cuda", tensor)
    all_of(None)  # now the first process of each host has filled the tensor
    return memory


def _needed(shards: Path, split: str) -> int:
    """The bytes of the features of a split."""
    index = read_index(shards)
    return index.sample_bytes * index.split(split).images


def _free(device: torch.device, here: int) -> dict[str, int]:
    """The bytes that are free for this process, one of `here`; the best place is first."""
    free = {"device": torch.cuda.mem_get_info(device)[0]} if device.type == "cuda" else {}
    return {**free, "memory": free_memory() // here}


def _place(setting: str, needed: int, free: Mapping[str, int]) -> str:
    """Where features of so many bytes are, as the setting `training.features_in` says."""
    if setting == "auto":
        return next((place for place in free if needed <= free[place] // _FREE_SHARE), "shards")
    return "memory" if setting == "device" and "device" not in free else setting


def _workers(here: int) -> int:
    """The number of processes that prepare batches for each of the `here` GPUs of this host."""
    return max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) // here))


def all_of(value: Any) -> list[Any]:
    """The `value` of each process of the training; all call this together."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    distributed.all_gather_object(values, value)
    return values


def host_tensor(shape: Sequence[int], kind: torch.dtype) -> tuple[Tensor, bool]:
    """Zeros that all processes of this host share, and whether this process is to fill them.

    All processes of the training call this together. The memory has no name in the file system, so
    it ends with the processes, also after a kill.
    """
    count = math.prod(shape)
    own = os.memfd_create("features")
    try:
        os.truncate(own, count * kind.itemsize)
        host = socket.gethostname(), Path("/proc/self/ns/pid").stat().st_ino
        places = all_of((*host, os.getpid(), own))
        first = next(place for place in places if place[:2] == host)
        path = f"/proc/{first[2]}/fd/{first[3]}"
        tensor = torch.from_file(path, shared=True, size=count, dtype=kind).view(*shape)
        all_of(None)  # until here the first process keeps its file open
    finally:
        os.close(own)
    return tensor, first[2] == os.getpid()
