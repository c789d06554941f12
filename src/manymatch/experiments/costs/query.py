"""Measure one text query in the parts that a user waits for: parse, encode, search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from manymatch.batch.collate import collate_captions
from manymatch.batch.numbering import CaptionEntry, Numbering
from manymatch.batch.scene_graph import NO_GRAPH, SceneGraph
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.experiments.costs.timing import median_seconds
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.blocks import Score
from manymatch.results.costs import QueryCost
from manymatch.scene_graphs.parser import graphs, load_model
from manymatch.scene_graphs.verbs import as_parsed
from manymatch.similarities.blocks import runs

_BLOCK = 20_000
"""Images scored at once: enough that the overhead of a block is small."""
_MOST_BYTES = 2 * 1024**3


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


Parse = Callable[[str], SceneGraph]


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
