"""Measure one text query in the parts that a user waits for: parse, encode, search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from manymatch.experiments.costs.gallery import grown, search
from manymatch.experiments.costs.timing import median_seconds
from manymatch.methods.base import Embeddings, Method
from manymatch.results.costs import QueryCost
from manymatch.scene_graphs.graph import SceneGraph
from manymatch.scene_graphs.parser import graphs, load_model
from manymatch.shards.batch import Batch
from manymatch.shards.collate import Item, collate
from manymatch.shards.numbering import Numbering
from manymatch.shards.sample import CaptionEntry
from manymatch.text.wordpieces import AnyVocabulary

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

    def encode(entry: CaptionEntry) -> Embeddings:
        return method.encode_texts(_batch(numbering, entry).to(device))

    with torch.inference_mode():
        read = [_entry(caption, parse) for caption in captions]
        queries = [encode(entry) for entry in read]
        encoding = median_seconds(encode, read, device)
        searching = {}
        for size in sizes:
            look = partial(search, score, grown(images, size))
            searching[size] = 1000 * median_seconds(look, queries, device)
    parsing = 1000 * median_seconds(parse, captions, device) if parse else None
    return QueryCost(parse=parsing, encode=1000 * encoding, search=searching)


def _entry(caption: str, parse: Parse | None) -> CaptionEntry:
    # A method that reads no graph gets a graph that costs nothing: one object, the caption.
    graph = parse(caption) if parse else SceneGraph((caption,), (caption,), ((),), ())
    return CaptionEntry("query", caption, graph)


def _batch(numbering: Numbering, entry: CaptionEntry) -> Batch:
    blank = np.zeros((1, 1), np.float32)
    return collate([Item("query", blank, np.ones(1, bool), None, [numbering.caption(entry)])])
