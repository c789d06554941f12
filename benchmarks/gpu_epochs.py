"""Whole epochs on made-up shards: training with the features in each place, validation; the loader
alone; several GPUs together."""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import gpu_steps
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from data_path import Place
from gpu_steps import COMPARED, Lines, drop_nothing
from safetensors.torch import load_file
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from training_step import METHODS_OF_IMAGES, built, made_up_words, published

from manymatch.batch.batch import Batch
from manymatch.config.preset import Preset
from manymatch.experiments.costs.timing import seconds
from manymatch.shards.read import batches
from manymatch.training.data import Data, TrainingBatches, ValidationBatches
from manymatch.training.loop import Losses
from manymatch.training.train import train
from manymatch.training.validation import validate

METHODS = ("vse_infinity", "dive")
"""The methods of whole trainings: one whose step is short, one whose step is long."""
CHANGES: dict[str, Any] = {"accumulate": 2, "precision": "16-mixed", "compile": True}
"""Settings of `training` that whole trainings change, one at a time."""
VALIDATION = 0.1
"""The share of the made-up images that validates, at most 1,000 images."""
EPOCHS = 3
FULL = 0.8
"""The wanted share of an epoch's time in which the steps run."""


def write_shards(folder: Path, images: int) -> None:
    """Shards of so many images of 36 regions, and five captions each, in `folder`."""
    torch.set_num_threads(1)
    layout = Place(folder, images)
    layout.write_tables()
    layout.importing("scan", layout.write_precomp())()
    # The importer of this format has one file a split, so the splits are named afterwards.
    table = pq.read_table(layout.captions)
    first = images - min(1000, max(2, int(VALIDATION * images)))
    splits = [
        "train" if int(image) < first else "validation" for image in table["image_id"].to_pylist()
    ]
    column = table.schema.get_field_index("split")
    pq.write_table(
        table.set_column(column, table.schema.field(column), pa.array(splits)), layout.captions
    )
    layout.pack()
    made_up_words().save(folder / "vocabulary.json")


def places(device: torch.device) -> tuple[str, ...]:
    """The places of features, `training.features_in`."""
    return ("shards", "memory", "device") if device.type == "cuda" else ("shards", "memory")


def checks(
    folder: Path, options: Any, device: torch.device
) -> Iterator[tuple[str, Callable[[], Lines]]]:
    """The checks in their order, the most important first. `options`: those of `gpu_check`."""
    shards, images = Place(folder, 0).shards, options.images
    known = [name for name in options.methods if name in METHODS_OF_IMAGES]
    trained = [name for name in METHODS if name in known] or known[:1]
    for name in trained:
        for place in options.places:
            work = partial(epochs, name, place, images, folder, device)
            yield f"{name}, features {place}", work
    for key, value in CHANGES.items() if device.type == "cuda" and known else ():
        settings = known[0], options.places[0], images, folder, device
        yield f"{known[0]}, {key} {value}", partial(epochs, *settings, **{key: value})
    for name in trained:
        yield f"{name}, deterministic", partial(repeated, name, images, folder, device)
    for place in options.places:
        yield f"loader, features {place}", partial(loader_rate, shards, place, images, device)
    if options.processes > 1 and known:
        work = partial(together, trained[0], options.processes, shards, min(COMPARED, images))
        yield f"{options.processes} processes", work


def repeated(name: str, images: int, folder: Path, device: torch.device) -> Lines:
    """Train twice with `training.deterministic`, once with an average of the weights that forgets
    earlier weights at once, and compare the bits of the models."""
    weights = []
    for average in (0.0, 1e-30):
        preset = short(name, images, epochs=1, deterministic=True, weight_average=average)
        with training_of(preset, folder) as (work, model):
            work()
            weights.append(load_file(model / "model.safetensors"))
    one, other = weights
    bad = sum(not torch.equal(one[key], other[key]) for key in one)
    yield "tensors that differ in two trainings", bad, "0", lambda count: count == 0


def short(name: str, images: int, **changes: Any) -> Preset:
    """The published preset with a caption an image, and with `changes` of its training."""
    preset = published(name)
    settings = {"epochs": EPOCHS, "images_per_batch": images, "captions_per_image": 1}
    training = preset.training.model_copy(update={**settings, "logger": "csv", **changes})
    return preset.model_copy(update={"training": training})


@contextmanager
def training_of(
    preset: Preset, folder: Path, **options: Any
) -> Iterator[tuple[Callable[[], object], Path]]:
    """A training on the shards in `folder`, and the folder of its model, which is removed after."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        model, curves, state = (Path(place) / part for part in ("model", "curves", "state"))
        inputs = preset, Place(folder, 0).shards, folder / "vocabulary.json"
        yield partial(train, *inputs, model, curves, state, **options), model


def epochs(
    name: str, setting: str, images: int, folder: Path, device: torch.device, **changes: Any
) -> Lines:
    """Train some epochs; the time of the last one, and its part in which the steps run. `changes`:
    other settings of `training`, which the steps of that part do not have."""
    preset = short(name, images, features_in=setting, **changes)
    ends: list[float] = []
    ended = lambda _: ends.append(time.perf_counter())  # noqa: E731
    with training_of(preset, folder, end_of_epoch=ended) as (work, _):
        places: Counter[str] = Counter()
        if device.type == "cuda":
            with mock.patch("manymatch.training.train.quiet", nullcontext):
                places = gpu_steps.waits(work)
        else:
            work()
    last = ends[-1] - ends[-2]
    yield "epoch, s", last, "", None
    data = Data(Place(folder, 0).shards, made_up_words())
    stream = TrainingBatches(preset, data, device=device)
    batch = next(iter(stream))[0]
    method = built(preset, made_up_words()).to(device)
    step = gpu_steps.step_seconds(method, preset.training, [batch] * 8, device)
    yield "steps", len(stream), "", None
    if device.type == "cuda":
        place, count = (places.most_common(1) or [("", 0)])[0]
        each = count / (EPOCHS * len(stream))
        yield "waits a step", each, f"less than 1 {place}", lambda value: value < 1
    yield "images/s", len(stream) * images / last, "", None
    split = ValidationBatches(data, images, method.read_graph, preset=preset, device=device)
    list(split)  # the first epoch reads the shards
    yield "validation, s", seconds(lambda: validate(method, split, device), device), "", None
    share = len(stream) * step / last
    good = (lambda value: value >= FULL) if device.type == "cuda" else None
    yield "steps' part of the epoch", share, f"at least {FULL}" if good else "", good


def loader_rate(shards: Path, setting: str, images: int, device: torch.device) -> Lines:
    """Batches a second on the device in the second epoch; the first starts the workers."""
    training = {"images_per_batch": images, "captions_per_image": 1, "features_in": setting}
    preset = Preset.model_validate({"method": "vsepp", "features": "butd", "training": training})
    stream = TrainingBatches(preset, Data(shards, made_up_words()), device=device)
    for stream.epoch in range(2):
        started = time.perf_counter()
        for _ in stream:
            pass
        if device.type == "cuda":
            torch.cuda.synchronize()
    yield "batches/s", len(stream) / (time.perf_counter() - started), "", None


def together(name: str, processes: int, shards: Path, images: int) -> Lines:
    """Three steps of several processes, with `images` in each, against those of one: the largest
    relative difference of each loss, and the waits of all steps but the first."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_rank, (processes, name, shards, images, folder), processes)
        alone = torch.load(Path(folder) / "alone.pt")
        shared = [torch.load(path) for path in sorted(Path(folder).glob("rank-*.pt"))]
    for step in range(gpu_steps.STEPS):
        loss = alone["losses"][step]
        difference = max(abs(one["losses"][step] - loss) / abs(loss) for one in shared)
        measured = f"step {step + 1}: loss differs from one process's by"
        yield measured, difference, "at most 1e-5", lambda x: x <= 1e-5
    if torch.cuda.device_count() >= processes:
        waits = sum((Counter(one["waits"]) for one in shared), Counter())
        shown = ", ".join(f"{place} x {count}" for place, count in waits.most_common(2))
        yield "waits after the first step", waits.total(), f"0 {shown}", lambda count: count == 0
        yield "step, ms", 1e3 * max(one["seconds"] for one in shared), "", None


def _rank(rank: int, world: int, name: str, shards: Path, images: int, folder: str) -> None:
    """Write what the steps of this process gave, and in the first process those without others."""
    gpu = torch.cuda.device_count() >= world
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    if rank == 0:
        torch.save(_steps(name, shards, device, world * images), f"{folder}/alone.pt")
    distributed.init_process_group(
        "nccl" if gpu else "gloo", f"file://{folder}/meeting", rank=rank, world_size=world
    )
    torch.save(_steps(name, shards, device, images, rank, world), f"{folder}/rank-{rank}.pt")
    distributed.destroy_process_group()


def _steps(
    name: str, shards: Path, device: torch.device, images: int, rank: int = 0, world: int = 1
) -> dict[str, Any]:
    """Some steps of process `rank` of `world` in float32, without dropout. The optimiser is SGD:
    the first steps of Adam are equally long where a gradient is a rounding error."""
    vocabulary, preset = made_up_words(), published(name)
    losses = Losses(drop_nothing(built(preset, vocabulary)).train()).to(device)
    losses.method.start_epoch(preset.training.epochs)
    losses.method.start_step(preset.training.epochs)
    unused = losses.method.reads_graphs
    model = DistributedDataParallel(losses, find_unused_parameters=unused) if world > 1 else losses
    optimizer = torch.optim.SGD(losses.parameters(), lr=0.01)
    stream = batches(shards, "train", vocabulary, images, rank=rank, world=world, drop_last=True)
    moved = [batch.to(device) for batch in islice(stream, gpu_steps.STEPS)]
    totals: list[torch.Tensor] = []

    def step(batch: Batch) -> None:
        loss = torch.stack(list(model((batch,)).values())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        totals.append(loss.detach())

    def others() -> None:
        for batch in moved[1:]:
            step(batch)

    step(moved[0])  # in which torch learns the order of the gradients
    waits: Counter[str] = Counter()
    if device.type == "cuda":
        waits = gpu_steps.waits(others)
    each = seconds(others, device) / len(moved[1:])
    return {"losses": [float(total) for total in totals], "waits": dict(waits), "seconds": each}
