"""Whole epochs on made-up shards: training with the features in each place, validation, evaluation;
the loader alone; features of pictures; several GPUs together."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import gpu_steps
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from data_path import Place
from gpu_steps import COMPARED, Lines, without_dropout
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel
from training_step import METHODS_OF_IMAGES, built, made_up_words, published

from manymatch.batch.batch import Batch
from manymatch.config.preset import Preset
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs.timing import seconds
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.embed import inference
from manymatch.shards.read import batches
from manymatch.training.data import Data, TrainingBatches, ValidationBatches
from manymatch.training.loop import Losses
from manymatch.training.train import train
from manymatch.training.validation import validate

METHODS = ("vse_infinity", "dive")
"""The methods of whole trainings: one whose step is short, one whose step is long."""
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
    first = images - min(1000, int(VALIDATION * images))
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
    for name in [name for name in METHODS if name in known] or known[:1]:
        for place in options.places:
            work = partial(epochs, name, place, images, folder, device)
            yield f"{name}, features {place}", work
    for place in options.places:
        yield f"loader, features {place}", partial(loader_rate, shards, place, images, device)
    if options.processes > 1:
        several = partial(together, known[0], options.processes, shards)
        yield f"{options.processes} processes", several
    if device.type == "cuda":
        yield "evaluation of 5,000 images", partial(evaluation, "dive", 5000, device)
        yield "resnet152", partial(pictures, folder, device)


def epochs(name: str, setting: str, images: int, folder: Path, device: torch.device) -> Lines:
    """Train some epochs; the time of the last one, and its part in which the steps run."""
    preset = published(name)
    training = preset.training.model_copy(
        update={
            "epochs": EPOCHS,
            "images_per_batch": images,
            "captions_per_image": 1,
            "features_in": setting,
            "logger": "csv",
        }
    )
    preset = preset.model_copy(update={"training": training})
    ends: list[float] = []
    shards, words = Place(folder, 0).shards, folder / "vocabulary.json"
    with tempfile.TemporaryDirectory(dir=folder) as place:
        model, curves, state = (Path(place) / part for part in ("model", "curves", "state"))
        ended = lambda _: ends.append(time.perf_counter())  # noqa: E731
        work = partial(train, preset, shards, words, model, curves, state, end_of_epoch=ended)
        places: Counter[str] = Counter()
        if device.type == "cuda":
            with mock.patch("manymatch.training.train.quiet", nullcontext):
                places = gpu_steps.waits(work)
        else:
            work()
    last = ends[-1] - ends[-2]
    yield "epoch, s", last, "", None
    stream = TrainingBatches(preset, Data(shards, made_up_words()), device=device)
    batch = next(iter(stream))[0]
    method = built(preset, made_up_words()).to(device)
    step = gpu_steps.step_seconds(method, training, [batch] * 8, device)
    yield "steps", len(stream), "", None
    if device.type == "cuda":
        place, count = (places.most_common(1) or [("", 0)])[0]
        each = count / (EPOCHS * len(stream))
        yield "waits a step", each, f"less than 1 {place}", lambda value: value < 1
    yield "images/s", len(stream) * images / last, "", None
    data = Data(shards, made_up_words())
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


def evaluation(name: str, images: int, device: torch.device) -> Lines:
    """Rank random embeddings of as many images and five captions each, 100 results deep."""
    method = built(published(name), made_up_words()).to(device).eval()
    random = torch.Generator(device).manual_seed(0)

    def embedded(count: int) -> Embeddings:
        vectors = torch.randn(count, 4, 1024, generator=random, device=device)
        return Embeddings(nn.functional.normalize(vectors, dim=2))

    image_of = torch.arange(images).repeat_interleave(5)
    gallery = embedded(images), embedded(5 * images), image_of
    with inference(method, device):
        work = partial(rank, method.score, *gallery, depth=100, t2i_score=method.t2i_score)
        work()
        yield f"{name}, s", seconds(work, device), "", None


def pictures(folder: Path, device: torch.device, count: int = 512) -> Lines:
    """Grid features of made-up pictures by a ResNet-152 of random weights."""
    from PIL import Image

    from manymatch.features.backbone import GridBackbone
    from manymatch.features.extractors import Extractor
    from manymatch.features.image_list import Picture
    from manymatch.networks.backbones import resnet

    random = np.random.default_rng(0)
    places = []
    for number in range(count):
        path = folder / f"{number}.jpg"
        small = random.integers(0, 256, (48, 64, 3), np.uint8)
        Image.fromarray(small).resize((640, 480)).save(path)
        places.append(Picture(str(number), path))
    network = resnet.fresh("resnet152")
    backbone = GridBackbone(
        network, resnet.MEAN, resnet.STD, size=224, width=resnet.WIDTH, scaling=""
    )
    extractor = Extractor("resnet152", backbone, device, 64)
    list(extractor.run(places[:64]))
    yield "pictures/s", len(places) / seconds(lambda: list(extractor.run(places)), device), "", None


def together(name: str, processes: int, shards: Path) -> Lines:
    """The relative difference of the loss that several processes compute from that of one."""
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(_rank, (processes, name, shards, folder), processes)
        losses = [float(torch.load(path)) for path in sorted(Path(folder).glob("*.pt"))]
    alone, *shared = losses
    difference = max(abs(loss - alone) / abs(alone) for loss in shared)
    yield "loss differs from one process's by", difference, "at most 1e-5", lambda x: x <= 1e-5


def _rank(rank: int, world: int, name: str, shards: Path, folder: str) -> None:
    """Write the loss of this process, and in the first one that of a process without others."""
    vocabulary = made_up_words()
    gpu = torch.cuda.device_count() >= world
    device = torch.device("cuda", rank) if gpu else torch.device("cpu")
    losses = Losses(without_dropout(built(published(name), vocabulary)).eval()).to(device)

    def batch(images: int, *share: int) -> Batch:
        stream = batches(shards, "train", vocabulary, images, rank=share[0], world=share[1])
        return next(iter(stream)).to(device)

    def total(terms: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.stack(list(terms.values())).sum()

    if rank == 0:
        alone = total(losses((batch(world * COMPARED, 0, 1),)))
        torch.save(alone.detach().cpu(), f"{folder}/alone.pt")
    distributed.init_process_group(
        "nccl" if gpu else "gloo", f"file://{folder}/meeting", rank=rank, world_size=world
    )
    model = DistributedDataParallel(losses, find_unused_parameters=losses.method.reads_graphs)
    loss = total(model((batch(COMPARED, rank, world),)))
    loss.backward()
    torch.save(loss.detach().cpu(), f"{folder}/rank-{rank}.pt")
    distributed.destroy_process_group()
