"""The first hour on a GPU: are its numbers the CPU's, is it busy, is it fed?

    make gpu-check
    python benchmarks/gpu_check.py dive maxmatch --images 64

The first table has a line for each method at the size of the papers (see `training_step.py`):

- difference: of the loss, relative to the CPU's, in two steps of 8 images in float32, without
  dropout and with random numbers from the CPU (wanted: 1e-4 in the first step);
- step, images: milliseconds of a step and images a second in the preset's precision, the batch on
  the device;
- busy: the kernels' part of the step (wanted: 90%; less means that the GPU waits for the CPU);
- memory: the most that a step takes on the GPU.

The second table has the batches that `--workers` processes prepare in a second, by the setting
`training.features_in` (wanted: more than the GPU takes). Then two GPUs train a step together, if
there are two: the loss must be that of one. Without a GPU everything runs on the CPU, and what only
a GPU has is left out.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from data_path import Place
from measuring import arguments
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode
from training_step import (
    METHODS_OF_IMAGES,
    built,
    made_up,
    made_up_words,
    profiled,
    published,
)

from manymatch.batch.batch import Batch
from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset
from manymatch.experiments.costs.timing import hardware, step_seconds, training_step
from manymatch.methods.shared.method import Method
from manymatch.shards.read import batches
from manymatch.training.data import Data, TrainingBatches
from manymatch.training.gather import gather

COMPARED = 8
"""Images of a step that is compared."""


def main() -> None:
    gpus = torch.cuda.device_count()
    options = arguments(
        __doc__,
        {"methods": METHODS_OF_IMAGES},
        images=(128, "images of a batch"),
        stored=(2560, "images of the loader's shards"),
        processes=(min(2, gpus), "processes that train together"),
    )
    device = torch.device("cuda" if gpus else "cpu")
    vocabulary = made_up_words()
    print(f"{hardware(device)}, torch {torch.__version__}, {options.images} images a batch")
    print("| method | difference | step, ms | images/s | busy | memory, GB |")
    print("|---|---|---|---|---|---|")
    for name in options.methods:
        print(method_line(name, options.images, vocabulary, device), flush=True)
    print("\n| features in | batches/s |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        layout = Place(Path(folder), options.stored)
        layout.write_tables()
        layout.importing("scan", layout.write_precomp())()
        layout.pack()
        for setting in ("shards", "memory", "device")[: 3 if gpus else 2]:
            rate = loader_rate(layout.shards, setting, options.images, vocabulary, device)
            print(f"| {setting} | {rate:.0f} |", flush=True)
        if options.processes < 2:
            print("\nseveral processes: left out, because there are not two GPUs")
            return
        shares = options.processes, layout.shards, vocabulary
        difference = together(options.methods[0], *shares)
    print(f"\n{options.processes} processes: the loss differs from one's by {difference:.0e}")


def method_line(name: str, images: int, vocabulary: Vocabulary, device: torch.device) -> str:
    preset = published(name)
    captions = preset.training.captions_per_image or 5
    first, second = differences(preset, made_up(COMPARED, captions, vocabulary), vocabulary, device)
    batch = made_up(images, captions, vocabulary).to(device)
    seconds = step_seconds(
        built(preset, vocabulary).to(device), preset.training, [batch] * 5, device
    )
    busy = memory = "-"
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        events, _ = profiled(preset, vocabulary, [batch, batch], device)
        busy = f"{sum(event.self_device_time_total for event in events) / 1e6 / seconds:.0%}"
        memory = f"{torch.cuda.max_memory_allocated() / 1e9:.1f}"
    return (
        f"| {name} | {first:.0e}, {second:.0e} | {1e3 * seconds:.0f} | {images / seconds:.0f} "
        f"| {busy} | {memory} |"
    )


class DrawnOnCPU(TorchFunctionMode):
    """Random numbers are the CPU's on every device."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        options = dict(options or {})
        if function in (torch.randn, torch.rand, torch.randint, torch.randperm):
            return function(*arguments, **{**options, "device": "cpu"}).to(options.get("device"))
        if function in (torch.randn_like, torch.rand_like):
            like = arguments[0]
            return function(like.cpu(), *arguments[1:], **options).to(like.device)
        return function(*arguments, **options)


def differences(
    preset: Preset, batch: Batch, vocabulary: Vocabulary, device: torch.device
) -> list[float]:
    """The relative differences of the losses of two steps in float32 from those of the CPU."""
    training = preset.training.model_copy(update={"precision": "32-true"})

    def losses(where: torch.device) -> list[float]:
        method = without_dropout(built(preset, vocabulary)).to(where)
        step, moved = training_step(method, training, where), batch.to(where)
        with DrawnOnCPU():
            return [float(step(moved)) for _ in range(2)]

    pairs = zip(losses(device), losses(torch.device("cpu")), strict=True)
    return [abs(ours - theirs) / abs(theirs) for ours, theirs in pairs]


def without_dropout(method: Method) -> Method:
    for module in method.modules():
        if isinstance(module, nn.Dropout | nn.RNNBase):
            setattr(module, "p" if isinstance(module, nn.Dropout) else "dropout", 0.0)
    return method


def loader_rate(
    shards: Path, setting: str, images: int, vocabulary: Vocabulary, device: torch.device
) -> float:
    """Batches a second on the device in the second epoch; the first starts the workers."""
    training = {"images_per_batch": images, "captions_per_image": 1, "features_in": setting}
    preset = Preset.model_validate({"method": "vsepp", "features": "butd", "training": training})
    stream = TrainingBatches(preset, Data(shards, vocabulary), device=device)
    for stream.epoch in range(2):
        started = time.perf_counter()
        for _ in stream:
            pass
        if device.type == "cuda":
            torch.cuda.synchronize()
    return len(stream) / (time.perf_counter() - started)


def together(name: str, processes: int, shards: Path, vocabulary: Vocabulary) -> float:
    """The relative difference of the loss that several processes compute from that of one."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = (processes, name, shards, vocabulary, folder)
        multiprocessing.spawn(_rank, arguments, processes)
        losses = [float(torch.load(path)) for path in sorted(Path(folder).glob("*.pt"))]
    alone, *shared = losses
    return max(abs(loss - alone) / abs(alone) for loss in shared)


def _rank(
    rank: int, world: int, name: str, shards: Path, vocabulary: Vocabulary, folder: str
) -> None:
    """Write the loss of this process, and in the first one that of a process without others."""
    gpu = torch.cuda.device_count() >= world
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    whole = Whole(without_dropout(built(published(name), vocabulary)).eval()).to(device)

    def batch(images: int, *share: int) -> Batch:
        stream = batches(shards, "train", vocabulary, images, rank=share[0], world=share[1])
        return next(iter(stream)).to(device)

    if rank == 0:
        torch.save(whole(batch(world * COMPARED, 0, 1)).detach().cpu(), f"{folder}/alone.pt")
    distributed.init_process_group(
        "nccl" if gpu else "gloo", f"file://{folder}/meeting", rank=rank, world_size=world
    )
    model = DistributedDataParallel(whole, find_unused_parameters=whole.method.reads_graphs)
    loss = model(batch(COMPARED, rank, world))
    loss.backward()
    torch.save(loss.detach().cpu(), f"{folder}/rank-{rank}.pt")
    distributed.destroy_process_group()


class Whole(nn.Module):
    """The loss of the batches of all processes together."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def forward(self, batch: Batch) -> torch.Tensor:
        images, texts = self.method.encode_images(batch), self.method.encode_texts(batch)
        images, texts, image_index = gather(images, texts, batch.image_index)
        terms = self.method.loss(images, texts, replace(batch, image_index=image_index))
        return torch.stack(list(terms.values())).sum()


if __name__ == "__main__":
    main()
