"""The command `efficiency`: what every trained model of a data set costs, in one JSON file.

Times are of this machine and this moment, so they are no stage of the pipeline.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from manymatch import files
from manymatch.efficiency.operations import similarity_operations
from manymatch.efficiency.query import Latency, Parse, parser, query_latency
from manymatch.efficiency.scan import Scan, Shape
from manymatch.efficiency.timing import seconds
from manymatch.efficiency.training_step import step_seconds
from manymatch.errors import ConfigError
from manymatch.evaluation.blocks import rows
from manymatch.evaluation.embed import embed
from manymatch.evaluation.ranks import rank
from manymatch.methods.checkpoint import load_model
from manymatch.progress import say
from manymatch.shards.batch import Batch
from manymatch.shards.read import batches, samples

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
_QUERIES, _STEPS = 23, 7
_IMAGES_PER_BATCH = 64


@dataclass(frozen=True)
class Source:
    """A trained model, and the shards that it was trained on."""

    model: Path
    shards: Path


@dataclass(frozen=True)
class Cost:
    """One row. Seconds and milliseconds are medians; `test_seconds` embeds and ranks the split."""

    name: str
    method: str
    parameters: int | None
    similarity_multiply_adds: int
    step_seconds: float | None
    step_images: int | None
    step_captions: int | None
    peak_gpu_memory_mb: float | None
    test_seconds: float | None
    query: Latency


def measure(
    dataset: str, sources: Sequence[Source], output: Path, split: str, parser_model: str
) -> None:
    """Measure all `sources`, SCAN's cross-attention on data of the first one's shape, and write.

    Raises:
        CheckpointError, DataError: a model or its shards cannot be used.
        ConfigError: nothing to measure.
    """
    if not sources:
        raise ConfigError(f"no trained model of '{dataset}' to measure; run 'dvc repro' first")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    parse = parser(parser_model)
    costs = []
    for source in sources:
        costs.append(_cost(source, split, parse, device))
        say(f"{costs[-1].name}: {_told(costs[-1])}")
    costs.append(_cross_attention(sources[0], split, device))
    say(f"{costs[-1].name}: {_told(costs[-1])}")
    files.write_json(output, _record(dataset, split, device, costs))


def _cost(source: Source, split: str, parse: Parse, device: torch.device) -> Cost:
    method, recipe, vocabulary = load_model(source.model)
    method.to(device)
    stream = batches(source.shards, split, vocabulary, _IMAGES_PER_BATCH)
    found = embed(method, stream, device)  # also warms up what the timed pass runs
    steps = _training_batches(source, vocabulary, recipe.training, device)
    peak = torch.cuda.max_memory_allocated if device.type == "cuda" else None
    if peak:
        torch.cuda.reset_peak_memory_stats()
    step = step_seconds(method, recipe.training, steps, device)
    first = slice(0, 1)

    def test() -> None:
        again = embed(method, batches(source.shards, split, vocabulary, _IMAGES_PER_BATCH), device)
        rank(method.score, again.images, again.texts, again.owner, t2i_score=method.t2i_score)

    return Cost(
        name=source.model.name,
        method=recipe.method,
        parameters=sum(parameter.numel() for parameter in method.parameters()),
        similarity_multiply_adds=similarity_operations(
            method.score, rows(found.images, first), rows(found.texts, first)
        ),
        step_seconds=step,
        step_images=len(steps[0].image_ids),
        step_captions=len(steps[0].caption_ids),
        peak_gpu_memory_mb=peak() / 2**20 if peak else None,
        test_seconds=seconds(test, device),
        query=query_latency(
            method,
            vocabulary,
            found.images,
            _captions(source.shards, split, _QUERIES),
            GALLERIES,
            parse if method.reads_graphs else None,
            device,
        ),
    )


def _training_batches(
    source: Source, vocabulary: Any, training: Any, device: torch.device
) -> list[Batch]:
    stream = batches(
        source.shards,
        "train",
        vocabulary,
        training.images_per_batch,
        captions_per_image=training.captions_per_image,
        shuffle=(0, 0),
    )
    return [batch.to(device) for batch in islice(stream, _STEPS)]


def _captions(shards: Path, split: str, count: int) -> list[str]:
    texts = (entry.text for sample in samples(shards, split) for entry in sample.captions)
    return list(islice(texts, count))


def _cross_attention(source: Source, split: str, device: torch.device) -> Cost:
    """SCAN on regions and captions as this source has them, at its embeddings' size."""
    method, _, vocabulary = load_model(source.model)
    batch = next(iter(batches(source.shards, split, vocabulary, _IMAGES_PER_BATCH)))
    with torch.inference_mode():
        size = method.encode_images(batch).vectors.shape[2]
    words = round(float(batch.word_mask.sum(1).float().mean()))
    scan = Scan(Shape(batch.features.shape[1], words, size), device)
    return Cost(
        name="cross-attention",
        method="scan",
        parameters=None,
        similarity_multiply_adds=scan.operations(),
        step_seconds=None,
        step_images=None,
        step_captions=None,
        peak_gpu_memory_mb=None,
        test_seconds=None,
        query=Latency(None, None, scan.search(GALLERIES)),
    )


def _told(cost: Cost) -> str:
    largest = max(cost.query.search)
    step = f", a step {1000 * cost.step_seconds:.0f} ms" if cost.step_seconds else ""
    return (
        f"{cost.similarity_multiply_adds:,} multiply-adds a similarity{step}, "
        f"{cost.query.search[largest]:.0f} ms to search {largest:,} images"
    )


def _record(
    dataset: str, split: str, device: torch.device, costs: Sequence[Cost]
) -> dict[str, Any]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "dataset": dataset,
        "split": split,
        "device": f"{device.type} ({name})",
        "threads": torch.get_num_threads(),
        "galleries": list(GALLERIES),
        "rows": [asdict(cost) for cost in costs],
    }
