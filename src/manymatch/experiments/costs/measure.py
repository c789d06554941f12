"""The command `efficiency`: what every trained model of a data set costs (`results.costs`).

The times depend on the machine and its load, so this is not a stage of the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manymatch import __version__
from manymatch.config.preset import Preset
from manymatch.evaluation.embedded_model import embed_split
from manymatch.experiments.costs.cost import cost_of
from manymatch.experiments.costs.query import parser
from manymatch.experiments.costs.scan import cross_attention_cost
from manymatch.experiments.costs.timing import hardware
from manymatch.methods import method_class
from manymatch.model.checkpoint import load_model
from manymatch.networks.device import pick_device
from manymatch.results.costs import Cost, Costs
from manymatch.results.machine import git_revision
from manymatch.shards.read import read_index
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say, working

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
"""Sizes of the galleries that a text query searches, in images, as in CORA's section 7."""


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
