"""What one trained model costs: to train, to test, to ask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

import torch

from manymatch.evaluation.embed import Embedded, embed
from manymatch.evaluation.protocols.subject import part
from manymatch.evaluation.provenance import setting_of
from manymatch.evaluation.ranking.ranks import rank
from manymatch.evaluation.trained import Trained
from manymatch.experiments.costs.operations import similarity_operations
from manymatch.experiments.costs.query import Latency, Parse, query_latency
from manymatch.experiments.costs.timing import seconds
from manymatch.experiments.costs.training_step import step_seconds
from manymatch.methods.base import Method
from manymatch.shards.batch import Batch
from manymatch.shards.read import batches, samples

IMAGES_PER_BATCH = 64
_QUERIES, _STEPS, _DEPTH = 23, 7, 10
_FIRST_IMAGES = 16

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Test:
    """Seconds to embed a split (read from its shards) and to rank it both ways, ten kept.

    `scaled_from`: the images, with their captions, whose ranking was measured; `ranking` is that
    time scaled to all pairs of the split. None: the ranking of the whole split was measured.
    """

    embedding: float
    ranking: float
    scaled_from: int | None


@dataclass(frozen=True)
class Step:
    """The median seconds of a training step, and on how much; the memory is of a GPU."""

    seconds: float
    images: int
    captions: int
    peak_gpu_memory_mb: float | None


@dataclass(frozen=True)
class Cost:
    """One row. `elements` vectors of `size` are compared; what is not trained has no `setting`."""

    name: str
    method: str
    setting: str | None
    elements: int
    size: int
    parameters: int
    multiply_adds: int
    """Of one similarity."""
    step: Step
    test: Test
    query: Latency


def cost_of(
    trained: Trained,
    split: str,
    parse: Parse | None,
    sizes: Sequence[int],
    device: torch.device,
    *,
    queries: int = _QUERIES,
    ranking_seconds: float = math.inf,
) -> Cost:
    """Measure a model whose embeddings of `split` were just made, which warms up what is timed.

    `parse` where the method reads graphs; `sizes` of the galleries that are searched by so many
    `queries`; `ranking_seconds`: how long the ranking of the split may take (`rank_seconds`).
    """
    method, found = trained.method, trained.found
    one = slice(0, 1)
    return Cost(
        name=trained.folder.name,
        method=trained.preset.method,
        setting=setting_of(trained.preset, trained.index),
        elements=found.images.vectors.shape[1],
        size=found.images.vectors.shape[2],
        parameters=sum(parameter.numel() for parameter in method.parameters()),
        multiply_adds=similarity_operations(
            method.score, found.images.rows(one), found.texts.rows(one)
        ),
        step=_step(trained, device),
        test=_test(trained, split, device, ranking_seconds),
        query=query_latency(
            method,
            trained.vocabulary,
            found.images,
            _captions(trained.shards, split, queries),
            sizes,
            parse,
            device,
        ),
    )


def _step(trained: Trained, device: torch.device) -> Step:
    training, on_gpu = trained.preset.training, device.type == "cuda"
    stream = batches(
        trained.shards,
        "train",
        trained.vocabulary,
        training.images_per_batch,
        captions_per_image=training.captions_per_image,
        shuffle=(0, 0),
        drop_last=True,
    )
    steps: list[Batch] = _enough((batch.to(device) for batch in stream), _STEPS)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    took = step_seconds(trained.method, training, steps, device)
    return Step(
        seconds=took,
        images=len(steps[0].image_ids),
        captions=len(steps[0].caption_ids),
        peak_gpu_memory_mb=torch.cuda.max_memory_allocated() / 2**20 if on_gpu else None,
    )


def _test(trained: Trained, split: str, device: torch.device, most_seconds: float) -> Test:
    def embedded() -> Embedded:
        stream = batches(trained.shards, split, trained.vocabulary, IMAGES_PER_BATCH)
        return embed(trained.method, stream, device)

    embedding = seconds(embedded, device)
    ranking, scaled_from = rank_seconds(trained.method, trained.found, device, most_seconds)
    return Test(embedding, ranking, scaled_from)


def rank_seconds(
    method: Method, found: Embedded, device: torch.device, most_seconds: float
) -> tuple[float, int | None]:
    """The seconds to rank a split both ways, and how many images they are `scaled_from` (`Test`).

    The first images tell how long all of them take. If that is more than `most_seconds`, as many
    images are ranked as take about that long.
    """

    def ranked(images: int) -> float:
        """Seconds for all pairs of the split, from those of so many images."""
        some = part(found, slice(0, images))
        parts = some.images, some.texts, some.owner
        took = seconds(
            lambda: rank(method.score, *parts, _DEPTH, t2i_score=method.t2i_score), device
        )
        return took * len(found.images) * len(found.texts) / (len(some.images) * len(some.texts))

    first = min(_FIRST_IMAGES, len(found.images))
    expected = ranked(first)
    if expected <= most_seconds:
        return ranked(len(found.images)), None
    images = max(first, int(len(found.images) * math.sqrt(most_seconds / expected)))
    return ranked(images), images


def _captions(shards: Path, split: str, count: int) -> list[str]:
    texts = (entry.text for sample in samples(shards, split) for entry in sample.captions)
    return _enough(texts, count)


def _enough(items: Iterable[_Item], count: int) -> list[_Item]:
    """The first `count`; where there are fewer, all of them over and over."""
    return list(islice(cycle(islice(items, count)), count))
