"""The command `efficiency`: what every trained model of a data set costs (`results.costs`).

The times depend on the machine and its load, so this is not a stage of the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from manymatch import __version__
from manymatch.config.preset import Optimizer, Preset, Training
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split
from manymatch.experiments.costs.cost import (
    IMAGES_PER_BATCH,
    cost_of,
    parser,
    similarity_operations,
)
from manymatch.experiments.costs.scan import Scan
from manymatch.experiments.costs.timing import hardware
from manymatch.methods import method_class
from manymatch.methods.shared.method import Embeddings
from manymatch.model.checkpoint import load_model
from manymatch.model.embed import embed
from manymatch.networks.device import pick_device
from manymatch.results.costs import Cost, Costs
from manymatch.results.machine import git_revision
from manymatch.shards.read import batches, read_index
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say, working

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
"""Sizes of the galleries that a text query searches, in images, as in CORA's section 7."""

SCAN = "cross-attention"
_TRAINING = Training(
    images_per_batch=128, captions_per_image=1, optimizer=Optimizer(name="adam", lr=2e-4)
)
"""SCAN's batch of 128 pairs, as measured in SwAMP's table 12."""
_QUERIES = 5
_RANKING_SECONDS = 60.0
"""If a split takes longer to rank, a part is ranked and the time is scaled up."""

Source = tuple[Path, Path]
"""The folders of a trained model and of the shards that the model was trained on."""


def measure(
    dataset: str, sources: Sequence[Source], output: Path, split: str, parser_model: str
) -> None:
    """Measure all `sources`, and SCAN on the data of the last source, and write one file.

    Raises:
        CheckpointError, DataError: a model or its shards cannot be used. All sources are checked
            before the first is measured.
        ConfigError: there is nothing to measure, or no parser for a method that reads graphs.
    """
    if not sources:
        raise ConfigError(f"no trained model of '{dataset}' to measure. Run 'dvc repro' first.")
    device = pick_device()
    presets = [_check(source, split) for source in sources]
    reads_graphs = any(method_class(preset.method).reads_graphs for preset in presets)
    parse = parser(parser_model) if reads_graphs else None
    costs = []
    for model, shards in sources:
        trained = embed_split(model, shards, split, device)
        graphs = parse if trained.method.reads_graphs else None
        with working(f"measure {model.name}"):
            costs.append(cost_of(trained, split, graphs, GALLERIES, device))
        _report(costs[-1])
    size = min(cost.size for cost in costs)
    with working("measure SCAN's cross-attention"):
        costs.append(cross_attention_cost(trained, split, size, GALLERIES, device))
    _report(costs[-1])
    Costs(
        dataset=dataset,
        split=split,
        images=len(trained.embedded.image_ids),
        captions=len(trained.embedded.caption_ids),
        hardware=hardware(device),
        version=__version__,
        git_revision=git_revision(trained.folder),
        rows=costs,
    ).write(output)


def _check(source: Source, split: str) -> Preset:
    """Check that the model loads and that the shards exist; return the model's preset."""
    _, preset, _ = load_model(source[0])
    index = read_index(source[1])
    for name in ("train", split):
        index.split(name)
    return preset


def _report(cost: Cost) -> None:
    largest = max(cost.query.search)
    say(
        f"{cost.name}: {cost.multiply_adds:,} multiply-adds a similarity, "
        f"a step {1000 * cost.step.seconds:.0f} ms, "
        f"{cost.query.search[largest]:.0f} ms to search {largest:,} images"
    )


def cross_attention_cost(
    trained: EmbeddedModel, split: str, size: int, sizes: Sequence[int], device: torch.device
) -> Cost:
    """The costs of SCAN with vectors of length `size`, on the data of the model `trained`.

    `sizes` are the numbers of images in the galleries that are searched.
    """
    pixels = trained.index.dtype == "uint8"
    scan = Scan(trained.vocabulary, None if pixels else trained.index.width, size).to(device)
    stream = batches(
        trained.shards, split, trained.vocabulary, IMAGES_PER_BATCH, graphs=scan.read_graph
    )
    subject = replace(
        trained,
        folder=Path(SCAN),
        method=scan,
        preset=Preset(method="scan", features=trained.preset.features, training=_TRAINING),
        embedded=embed(scan, stream, device),
    )
    cost = cost_of(
        subject,
        split,
        None,
        sizes,
        device,
        queries=_QUERIES,
        ranking_seconds=_RANKING_SECONDS,
    )
    regions, words = map(_mean_length, (subject.embedded.images, subject.embedded.texts))
    image, text = (
        Embeddings(torch.ones(1, count, size), mask=torch.ones(1, count, dtype=torch.bool))
        for count in (regions, words)
    )
    operations = similarity_operations(scan.score, image, text)
    changes = {"setting": None, "elements": regions, "multiply_adds": operations}
    return cost.model_copy(update=changes)


def _mean_length(sets: Embeddings) -> int:
    return round(float(sets.parts()["mask"].sum(1).double().mean()))
