"""The command `efficiency`: what every trained model of a data set costs, in one JSON file.

Times are of this machine and this moment, so they are no stage of the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from manymatch import __version__
from manymatch.config.preset import Preset
from manymatch.evaluation.trained import Trained, embed_split
from manymatch.experiments.costs.cost import Cost, cost_of
from manymatch.experiments.costs.hardware import hardware
from manymatch.experiments.costs.query import parser
from manymatch.experiments.costs.scan import cross_attention_cost
from manymatch.methods import method_class
from manymatch.methods.checkpoint import load_model
from manymatch.shards.read import read_index
from manymatch.system import files
from manymatch.system.device import pick_device
from manymatch.system.errors import ConfigError
from manymatch.system.machine import git_revision
from manymatch.system.progress import say

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
"""Images that a text query is searched in, as in CORA's section 7."""


@dataclass(frozen=True)
class Source:
    """A trained model, and the shards that it was trained on."""

    model: Path
    shards: Path


def measure(
    dataset: str, sources: Sequence[Source], output: Path, split: str, parser_model: str
) -> None:
    """Measure all `sources` and SCAN on the last one's data, and write all at once.

    Raises:
        CheckpointError, DataError: a model or its shards cannot be used; all are looked at before
            the first is measured.
        ConfigError: nothing to measure, or no parser for a method that reads graphs.
    """
    if not sources:
        raise ConfigError(f"no trained model of '{dataset}' to measure; run 'dvc repro' first")
    device = pick_device()
    presets = [_usable(source, split) for source in sources]
    reads_graphs = any(method_class(preset.method).reads_graphs for preset in presets)
    parse = parser(parser_model) if reads_graphs else None
    costs = []
    for source in sources:
        trained = embed_split(source.model, source.shards, split, device)
        graphs = parse if trained.method.reads_graphs else None
        costs.append(_told(cost_of(trained, split, graphs, GALLERIES, device)))
    size = min(cost.size for cost in costs)
    costs.append(_told(cross_attention_cost(trained, split, size, GALLERIES, device)))
    files.write_json(output, _record(dataset, split, trained, device, costs))


def _usable(source: Source, split: str) -> Preset:
    """The preset of a model that loads and whose shards are there."""
    _, preset, _ = load_model(source.model)
    index = read_index(source.shards)
    for name in ("train", split):
        index.split(name)
    return preset


def _told(cost: Cost) -> Cost:
    """The same, said to the person who waits."""
    largest = max(cost.query.search)
    say(
        f"{cost.name}: {cost.multiply_adds:,} multiply-adds a similarity, "
        f"a step {1000 * cost.step.seconds:.0f} ms, "
        f"{cost.query.search[largest]:.0f} ms to search {largest:,} images"
    )
    return cost


def _record(
    dataset: str, split: str, trained: Trained, device: torch.device, costs: Sequence[Cost]
) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "split": split,
        "images": len(trained.found.image_ids),
        "captions": len(trained.found.caption_ids),
        "hardware": hardware(device),
        "version": __version__,
        "git_revision": git_revision(trained.folder),
        "rows": [asdict(cost) for cost in costs],
    }
