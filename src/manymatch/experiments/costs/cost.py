"""Measure what one trained model costs: operations, a training step, a whole test, and a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from manymatch.batch.batch import Batch
from manymatch.batch.collate import collate_captions
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import NO_GRAPH, SceneGraph
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.evaluation.embedded_model import EmbeddedModel, setting_of
from manymatch.evaluation.protocols.ranked_split import part
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs.timing import median_seconds, seconds, step_seconds
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.blocks import Score
from manymatch.model.embed import Embedded, embed
from manymatch.results.costs import Cost, QueryCost, StepCost, TestCost
from manymatch.scene_graphs.parser import graphs, load_model
from manymatch.scene_graphs.verbs import as_parsed
from manymatch.shards.read import batches, samples
from manymatch.similarities.blocks import runs

Parse = Callable[[str], SceneGraph]
"""Parses a caption."""

IMAGES_PER_BATCH = 64
_QUERIES, _STEPS, _DEPTH = 23, 7, 10
_FIRST_IMAGES = 16
_BLOCK = 20_000
"""Images scored at once: enough that the overhead of a block is small."""
_MOST_BYTES = 2 * 1024**3

_Item = TypeVar("_Item")


def multiply_adds(compute: Callable[[], Tensor]) -> int:
    """Multiply-adds of the matrix products in `compute()`: what the papers call FLOPs.

    Elementwise operations are left out, as in the papers (DivE, section 4.4: K K D).
    """
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops() // 2


def similarity_operations(score: Score, image: Embeddings, text: Embeddings) -> int:
    """`multiply_adds` of `score` for one image and one text.

    The count is of the code that training uses: torch's counter does not see the in-place products
    of the fast code for retrieval.
    """
    with torch.enable_grad():
        return multiply_adds(lambda: score(_tracked(image), _tracked(text)))


def _tracked(embeddings: Embeddings) -> Embeddings:
    """Copies that can have a gradient, unlike tensors of inference mode."""
    copies = embeddings.map(lambda part: part.detach().clone())
    copies.vectors.requires_grad_()
    return copies


def cost_of(
    trained: EmbeddedModel,
    split: str,
    parse: Parse | None,
    sizes: Sequence[int],
    device: torch.device,
    *,
    queries: int = _QUERIES,
    ranking_seconds: float = math.inf,
) -> Cost:
    """Measure a model that has just embedded `split`, so that the timed code is warm.

    Args:
        parse: parses a caption, for methods that read scene graphs.
        sizes: the numbers of images in the galleries that are searched.
        queries: how many captions search each gallery.
        ranking_seconds: how long the ranking of the split may take (`rank_seconds`).
    """
    method, embedded = trained.method, trained.embedded
    one = slice(0, 1)
    texts = (entry.text for stored in samples(trained.shards, split) for entry in stored.captions)
    return Cost(
        name=trained.folder.name,
        method=trained.preset.method,
        setting=setting_of(trained.preset, trained.index),
        elements=embedded.images.vectors.shape[1],
        size=embedded.images.vectors.shape[2],
        parameters=sum(parameter.numel() for parameter in method.parameters()),
        multiply_adds=similarity_operations(
            method.score, embedded.images.rows(one), embedded.texts.rows(one)
        ),
        step=_step(trained, device),
        test=_test(trained, split, device, ranking_seconds),
        query=query_cost(
            method,
            trained.vocabulary,
            embedded.images,
            _repeated(texts, queries),
            sizes,
            parse,
            device,
        ),
    )


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
    steps: list[Batch] = _repeated((batch.to(device) for batch in stream), _STEPS)
    if uses_gpu:
        torch.cuda.reset_peak_memory_stats()
    median = step_seconds(trained.method, training, steps, device)
    return StepCost(
        seconds=median,
        images=len(steps[0].image_ids),
        captions=len(steps[0].caption_ids),
        peak_gpu_memory_mb=torch.cuda.max_memory_allocated() / 2**20 if uses_gpu else None,
    )


def _test(
    trained: EmbeddedModel, split: str, device: torch.device, most_seconds: float
) -> TestCost:
    def embedded() -> Embedded:
        method, words = trained.method, trained.vocabulary
        stream = batches(trained.shards, split, words, IMAGES_PER_BATCH, graphs=method.read_graph)
        return embed(method, stream, device)

    embedding = seconds(embedded, device)
    ranking, scaled_from = rank_seconds(trained.method, trained.embedded, device, most_seconds)
    return TestCost(embedding=embedding, ranking=ranking, scaled_from=scaled_from)


def rank_seconds(
    method: Method, split: Embedded, device: torch.device, most_seconds: float
) -> tuple[float, int | None]:
    """Time the ranking of a split in both directions: the seconds, and `TestCost.scaled_from`.

    The first images show how long all images would take. If that is longer than `most_seconds`,
    only as many images are ranked as take about that long.
    """

    def ranked(images: int) -> float:
        """Seconds for all pairs of the split, scaled from the first `images`."""
        first = part(split, slice(0, images))
        measured = seconds(
            lambda: rank(method.score, *first.gallery, _DEPTH, t2i_score=method.t2i_score), device
        )
        pairs = len(split.images) * len(split.texts)
        return measured * pairs / (len(first.images) * len(first.texts))

    first = min(_FIRST_IMAGES, len(split.images))
    expected = ranked(first)
    if expected <= most_seconds:
        return ranked(len(split.images)), None
    images = max(first, int(len(split.images) * math.sqrt(most_seconds / expected)))
    return ranked(images), images


def _repeated(items: Iterable[_Item], count: int) -> list[_Item]:
    """The first `count` items; fewer items are repeated until there are `count`."""
    return list(islice(cycle(islice(items, count)), count))


@dataclass(frozen=True)
class Gallery:
    """`size` images: the images `held`, repeated. They fill whole blocks, or are all images."""

    held: Embeddings
    size: int

    def blocks(self) -> Iterator[Embeddings]:
        """Yield all images in blocks, without copying."""
        for run in runs(self.size, _BLOCK):
            first = run.start % len(self.held)
            yield self.held.rows(slice(first, first + run.stop - run.start))


def grown(images: Embeddings, size: int, most_bytes: int = _MOST_BYTES) -> Gallery:
    """A gallery of `size` images: the given images, repeated, with the parts that a score can use.

    The gallery holds about `most_bytes` at most, and at least one block. That is far more than any
    cache, so a search takes as long as with `size` different images.
    """
    needed = images.scored_parts()
    image_bytes = sum(part[0].nbytes for part in needed.values())
    blocks = max(1, most_bytes // (image_bytes * _BLOCK))
    repeated = torch.arange(min(size, blocks * _BLOCK), device=images.vectors.device) % len(images)
    return Gallery(type(images)(**{name: part[repeated] for name, part in needed.items()}), size)


def search(score: Score, gallery: Gallery, query: Embeddings, depth: int = 10) -> Tensor:
    """`(depth,)`: the images of `gallery` that a single text `query` ranks first."""
    scores = torch.cat([score(block, query)[:, 0] for block in gallery.blocks()])
    return scores.topk(min(depth, len(scores))).indices


def parser(model: str) -> Parse:
    """A function that parses one caption to its scene graph with the spaCy model `model`."""
    pipeline = load_model(model)
    return lambda caption: next(graphs(pipeline, [caption], Counter()))


def query_cost(
    method: Method,
    vocabulary: AnyVocabulary,
    images: Embeddings,
    captions: Sequence[str],
    sizes: Sequence[int],
    parse: Parse | None,
    device: torch.device,
) -> QueryCost:
    """Medians over `captions`, each sent alone; the first three are left out.

    Args:
        images: embeddings that are repeated until they fill galleries of all `sizes`.
        parse: parses a caption, for methods that read scene graphs.
    """
    numbering, score = Numbering(vocabulary), method.t2i_score or method.score
    graph = method.read_graph or as_parsed

    def encode(entry: CaptionEntry) -> Embeddings:
        return method.encode_texts(collate_captions([numbering.caption(entry)]).to(device))

    with torch.inference_mode():
        read = [
            CaptionEntry("query", caption, graph(parse(caption)) if parse else NO_GRAPH)
            for caption in captions
        ]
        queries = [encode(entry) for entry in read]
        encoding = median_seconds(encode, read, device)
        searching = {}
        for size in sizes:
            look = partial(search, score, grown(images, size))
            searching[size] = 1000 * median_seconds(look, queries, device)
    parsing = 1000 * median_seconds(parse, captions, device) if parse else None
    return QueryCost(parse=parsing, encode=1000 * encoding, search=searching)
