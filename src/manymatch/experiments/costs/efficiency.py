"""The command `efficiency`: what the trained models of a data set cost (`results.costs`).

Operations, a training step, a whole test, and a query of each model, and of SCAN on the same data.
The times depend on the machine and its load, so this is not a stage of the pipeline.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from manymatch import __version__
from manymatch.batch.collate import collate_captions
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import NO_GRAPH, SceneGraph
from manymatch.config.preset import Optimizer, Preset, Training
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split, setting_of
from manymatch.experiments.costs.scan import Scan
from manymatch.experiments.costs.timing import (
    hardware,
    median_seconds,
    rank_seconds,
    seconds,
    similarity_operations,
    step_seconds,
)
from manymatch.methods import method_class
from manymatch.methods.shared.method import Embeddings
from manymatch.model.checkpoint import WEIGHTS_HASH, load_model
from manymatch.model.embed import Embedded, embed
from manymatch.model.facts import facts
from manymatch.model.scores import Score
from manymatch.networks.device import pick_device
from manymatch.results.costs import Cost, Costs, QueryCost, StepCost, TestCost
from manymatch.results.machine import git_revision
from manymatch.scene_graphs.parser import graphs
from manymatch.scene_graphs.parser import load_model as load_parser
from manymatch.scene_graphs.verbs import as_parsed
from manymatch.shards.read import batches, read_index, samples
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say, working

GALLERIES = (10, 100, 1_000, 10_000, 100_000)
"""Sizes of the galleries that a text query searches, in images, as in CORA's section 7."""
IMAGES_PER_BATCH = 64
_QUERIES, _STEPS = 23, 7
_BLOCK = 20_000
"""Images scored at once: enough that the overhead of a block is small."""
_MOST_BYTES = 2 * 1024**3

SCAN = "cross-attention"
_TRAINING = Training(
    images_per_batch=128, captions_per_image=1, optimizer=Optimizer(name="adam", lr=2e-4)
)
"""SCAN's batch of 128 pairs, as measured in SwAMP's table 12."""
_RANKING_SECONDS = 60.0
"""If SCAN takes longer to rank a split, a part is ranked and the time is scaled up."""

Source = tuple[Path, Path]
"""The folders of a trained model and of the shards that the model was trained on."""
Parse = Callable[[str], SceneGraph]
"""Parses a caption."""
_Item = TypeVar("_Item")


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
    reads_graphs = False
    for model, shards in sources:
        _, preset, _ = load_model(model)
        reads_graphs |= method_class(preset.method).reads_graphs
        for name in ("train", split):
            read_index(shards).split(name)
    parse = parser(parser_model) if reads_graphs else None
    costs = []
    for model, shards in sources:
        trained = embed_split(model, shards, split, device)
        graphs = parse if trained.method.reads_graphs else None
        with working(f"measure {model.name}"):
            cost = cost_of(trained, split, graphs, GALLERIES, device)
        made_by = {"checkpoint_sha256": facts(model)[WEIGHTS_HASH]}
        costs.append(cost.model_copy(update=made_by))
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
    """The costs of SCAN with vectors of length `size`, on the data of the model `trained`."""
    pixels = trained.index.dtype == "uint8"
    scan = Scan(trained.vocabulary, None if pixels else trained.index.width, size).to(device)
    subject = replace(
        trained,
        folder=Path(SCAN),
        method=scan,
        preset=Preset(method="scan", features=trained.preset.features, training=_TRAINING),
    )
    subject = replace(subject, embedded=_embedded(subject, split, device))
    cost = cost_of(subject, split, None, sizes, device, 5, _RANKING_SECONDS)
    # The elements are as many as an image and a caption have on average.
    regions, words = (
        round(float(sets.parts()["mask"].sum(1).double().mean()))
        for sets in (subject.embedded.images, subject.embedded.texts)
    )
    image, text = (
        Embeddings(torch.ones(1, count, size), mask=torch.ones(1, count, dtype=torch.bool))
        for count in (regions, words)
    )
    operations = similarity_operations(scan.score, image, text)
    changes = {"setting": None, "elements": regions, "multiply_adds": operations}
    return cost.model_copy(update=changes)


def cost_of(
    trained: EmbeddedModel,
    split: str,
    parse: Parse | None,
    sizes: Sequence[int],
    device: torch.device,
    queries: int = _QUERIES,
    ranking_seconds: float = math.inf,
) -> Cost:
    """Measure a model that has just embedded `split`, so that the timed code is warm. So many
    `queries` search each gallery of `sizes` images. `parse` is for methods that read scene graphs.
    """
    method, embedded = trained.method, trained.embedded
    texts = (entry.text for stored in samples(trained.shards, split) for entry in stored.captions)
    step = _step(trained, device)
    embedding = seconds(lambda: _embedded(trained, split, device), device)
    ranking, scaled_from = rank_seconds(method, embedded, device, ranking_seconds)
    # Each caption is sent alone, and the times are medians.
    captions = _repeated(texts, queries)
    numbering, score = Numbering(trained.vocabulary), method.t2i_score or method.score
    graph = method.read_graph or as_parsed

    def encode(entry: CaptionEntry) -> Embeddings:
        return method.encode_texts(collate_captions([numbering.caption(entry)]).to(device))

    with torch.inference_mode():
        read = [
            CaptionEntry("query", caption, graph(parse(caption)) if parse else NO_GRAPH)
            for caption in captions
        ]
        encoded = [encode(entry) for entry in read]
        encoding = median_seconds(encode, read, device)
        searching = {}
        for size in sizes:
            look = partial(search, score, grown(embedded.images, size))
            searching[size] = 1000 * median_seconds(look, encoded, device)
    parsing = 1000 * median_seconds(parse, captions, device) if parse else None
    return Cost(
        name=trained.folder.name,
        method=trained.preset.method,
        setting=setting_of(trained.preset, trained.index),
        elements=embedded.images.vectors.shape[1],
        size=embedded.images.vectors.shape[2],
        parameters=sum(parameter.numel() for parameter in method.parameters()),
        multiply_adds=similarity_operations(
            method.score, embedded.images.rows(slice(0, 1)), embedded.texts.rows(slice(0, 1))
        ),
        step=step,
        test=TestCost(embedding=embedding, ranking=ranking, scaled_from=scaled_from),
        query=QueryCost(parse=parsing, encode=1000 * encoding, search=searching),
    )


def _embedded(trained: EmbeddedModel, split: str, device: torch.device) -> Embedded:
    method, words = trained.method, trained.vocabulary
    stream = batches(trained.shards, split, words, IMAGES_PER_BATCH, graphs=method.read_graph)
    return embed(method, stream, device)


def _step(trained: EmbeddedModel, device: torch.device) -> StepCost:
    training, uses_gpu = trained.preset.training, device.type == "cuda"
    stream = batches(
        trained.shards,
        "train",
        trained.vocabulary,
        training.images_per_batch,
        captions_per_image=training.captions_per_image,
        shuffle=(0, 0),
        drop_last=True,
        graphs=trained.method.read_graph,
    )
    steps = _repeated((batch.to(device) for batch in stream), _STEPS)
    if uses_gpu:
        torch.cuda.reset_peak_memory_stats()
    return StepCost(
        seconds=step_seconds(trained.method, training, steps, device),
        images=len(steps[0].image_ids),
        captions=len(steps[0].caption_ids),
        peak_gpu_memory_mb=torch.cuda.max_memory_allocated() / 2**20 if uses_gpu else None,
    )


def _repeated(items: Iterable[_Item], count: int) -> list[_Item]:
    """The first `count` items; fewer items are repeated until there are `count`."""
    return list(islice(cycle(islice(items, count)), count))


def grown(images: Embeddings, size: int, most_bytes: int = _MOST_BYTES) -> list[Embeddings]:
    """A gallery of `size` images in blocks: the given images, repeated, with the parts that a score
    can use. The blocks share about `most_bytes` at most, and at least one block. That is far more
    than any cache, so a search takes as long as with `size` different images."""
    needed = images.scored_parts()
    image_bytes = sum(part[0].nbytes for part in needed.values())
    blocks = max(1, most_bytes // (image_bytes * _BLOCK))
    repeated = torch.arange(min(size, blocks * _BLOCK), device=images.vectors.device) % len(images)
    held = type(images)(**{name: part[repeated] for name, part in needed.items()})
    starts = [(run.start % len(held), run.stop - run.start) for run in runs(size, _BLOCK)]
    return [held.rows(slice(first, first + count)) for first, count in starts]


def search(score: Score, gallery: list[Embeddings], query: Embeddings, depth: int = 10) -> Tensor:
    """`(depth,)`: the images of `gallery` that a single text `query` ranks first."""
    scores = torch.cat([score(block, query)[:, 0] for block in gallery])
    return scores.topk(min(depth, len(scores))).indices


def parser(model: str) -> Parse:
    """A function that parses one caption to its scene graph with the spaCy model `model`."""
    pipeline = load_parser(model)
    return lambda caption: next(graphs(pipeline, [caption], Counter()))
