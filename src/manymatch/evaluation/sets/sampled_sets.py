"""Sets of sampled queries: where each element looks, what it reads, and what it retrieves (as in
DivE's figures 4, A2, A3 and MaxMatch's figures 5 to 7; DivE, table 5)."""

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.batch.collate import collate
from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.samples import Gallery, Queries, Stored
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.embed import Embedded, inference
from manymatch.model.explanation import words_read
from manymatch.model.scores import whole_rows
from manymatch.results.base import Record
from manymatch.results.sets import (
    CaptionAnswers,
    CaptionMap,
    ElementAnswers,
    ImageAnswers,
    ImageMap,
    NearestCaption,
    NearestImage,
)
from manymatch.shards.prepare import Preparation
from manymatch.shards.sample import Sample
from manymatch.similarities.sets import mil

_Answer = TypeVar("_Answer")
_DIGITS = 4
"""Decimals of a weight in a map."""


ITEMS_PER_ELEMENT = 3
"""Items shown for each element."""


@dataclass(frozen=True)
class NearestItems:
    """The `items (n, K, depth)` nearest to each of the K elements of n queries, nearest first, and
    their `cosines`. On the CPU."""

    items: Tensor
    cosines: Tensor

    @property
    def distinct(self) -> float:
        """The mean number of different items that are nearest to a query's elements: from 1 (all
        elements retrieve the same item) to K."""
        first = self.items[:, :, 0].sort(1).values
        return 1 + (first.diff(dim=1) != 0).sum(1).double().mean().item()


def nearest_items(queries: Tensor, gallery: Tensor) -> NearestItems:
    """Rank all items for each element of each query.

    The similarity of an element and an item is the cosine of the element and the item's nearest
    element (MaxMatch, section 4.5: "the best-matched embedding from the test sample's set").

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`, of any length but zero.

    Memory beyond a normalised copy of both is bounded. The cost is n K m L D multiply-adds: all
    queries of COCO 5K (5,000 and 25,000 sets of 4 vectors of 1,024) take about 70 s a direction on
    one CPU core.

    Raises:
        DataError: a vector is not finite.
    """
    elements = Embeddings(normalize(queries, dim=2).flatten(0, 1)[:, None])
    items = Embeddings(normalize(gallery, dim=2))
    depth = min(ITEMS_PER_ELEMENT, len(items))
    rows = whole_rows(lambda one, other: mil(one.vectors, other.vectors), elements, items)
    best = [scores.topk(depth, dim=1) for _, scores in rows]
    shape = *queries.shape[:2], depth
    return NearestItems(
        torch.cat([block.indices for block in best]).cpu().view(shape),
        torch.cat([block.values for block in best]).cpu().view(shape),
    )


def matching_elements(queries: Tensor, gallery: Tensor, items: Tensor) -> Tensor:
    """Which element (from 1) of each item is nearest to the element that retrieved the item.

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`.
        items: `(n, K, depth)` from `nearest_items`. All n are compared at once, so n must be small.

    Returns:
        `(n, K, depth)`, on the CPU.
    """
    candidates = normalize(gallery[items.to(gallery.device)], dim=4)
    return torch.einsum("nkd,nkild->nkil", queries, candidates).argmax(3).cpu() + 1


def sampled_sets(
    method: Method,
    embedded: Embedded,
    nearest: tuple[NearestItems, NearestItems],
    queries: Queries,
    stored: Stored,
    judgments: Judgments,
    vocabulary: AnyVocabulary,
) -> dict[str, Any]:
    """The fields `image_maps`, `caption_maps` and `nearest` of `results.sets.SetDetails`.

    There are no maps of a modality whose sets come without attention. `nearest` is what the
    elements of all images and of all captions retrieve.
    """
    nearest_images, nearest_captions = nearest
    rows = (
        torch.tensor(queries.images, dtype=torch.int64),
        embedded.image_index[nearest_images.items[queries.images]],
        embedded.image_index[queries.captions],
        nearest_captions.items[queries.captions],
    )
    gallery = Gallery.read(rows, embedded.image_index, judgments, stored)
    images = [gallery.images[row] for row in queries.images]
    captions = [gallery.caption(row) for row in queries.captions]
    image_attention, text_attention = embedded.images.attention, embedded.texts.attention
    return {
        "image_maps": []
        if image_attention is None
        else image_maps(
            images, image_attention[queries.images], _passes(method, images, vocabulary)
        ),
        "caption_maps": []
        if text_attention is None
        else caption_maps(captions, text_attention[queries.captions], vocabulary),
        "nearest": _element_answers(embedded, nearest, queries, gallery),
    }


def _passes(method: Method, images: Sequence[Sample], vocabulary: AnyVocabulary) -> Tensor | None:
    """`Method.image_passes` of these images alone: those of a whole split would fill the memory."""
    if not images:
        return None
    prepare = Preparation(vocabulary, None, None, None)
    device = next(method.parameters()).device
    with inference(method, device):
        return method.image_passes(
            collate([prepare(image, prepare.generator_for(image.key)) for image in images]).to(
                device
            )
        )


def _element_answers(
    embedded: Embedded,
    nearest: tuple[NearestItems, NearestItems],
    queries: Queries,
    gallery: Gallery,
) -> ElementAnswers:
    images, texts = embedded.images.vectors, embedded.texts.vectors
    captions = gallery.retrieved_caption, NearestCaption
    pictures = gallery.retrieved_image, NearestImage
    return ElementAnswers(
        images=[
            ImageAnswers(image_id=embedded.image_ids[row], elements=elements)
            for row, elements in _answers(queries.images, images, texts, nearest[0], *captions)
        ],
        captions=[
            CaptionAnswers(caption_id=embedded.caption_ids[row], elements=elements)
            for row, elements in _answers(queries.captions, texts, images, nearest[1], *pictures)
        ],
    )


def _answers(
    queries: Sequence[int],
    vectors: Tensor,
    gallery: Tensor,
    nearest: NearestItems,
    retrieved: Callable[[int, int, float], Record],
    kind: Callable[..., _Answer],
) -> Iterator[tuple[int, list[list[_Answer]]]]:
    """Each query with the answers of each of its elements. `retrieved` takes the rows of query and
    item, and the cosine; `kind` adds which element of the item (from 1) is nearest."""
    items = nearest.items[queries]
    facts = items, nearest.cosines[queries], matching_elements(vectors[queries], gallery, items)
    for query, *rows in zip(queries, *map(Tensor.tolist, facts), strict=True):
        yield (
            query,
            [
                [
                    kind(**retrieved(query, item, round(cosine, 4)).to_json(), element=element)
                    for item, cosine, element in zip(*columns, strict=True)
                ]
                for columns in zip(*rows, strict=True)
            ],
        )


def image_maps(
    images: Sequence[Sample], attention: Tensor, passes: Tensor | None = None
) -> list[ImageMap]:
    """The weight that each element gives to each region of the image.

    Images without known positions of their regions are left out.

    Args:
        images: as the shards hold them.
        attention: `(n, K, R)`; regions beyond those of an image are padding.
        passes: `(T, n, K, R)`, the maps of all passes, if the method refines sets in passes.
    """
    by_image: Iterable[Any] = [()] * len(images)
    if passes is not None:
        by_image = passes.cpu().transpose(0, 1)
    shown = []
    for image, weights, own_passes in zip(images, attention.cpu(), by_image, strict=True):
        if (boxes := image.boxes) is None:
            continue
        count, side, size = len(boxes), _grid_side(boxes), (1, 1)
        if image.thumbnail is not None:
            with Image.open(io.BytesIO(image.thumbnail)) as thumbnail:
                size = thumbnail.size
        edges = [tuple(round(edge, 3) for edge in box) for box in boxes.tolist()]
        shown.append(
            ImageMap(
                image_id=image.image_id,
                size=size,
                weights=_rounded(weights[:, :count]),
                passes=[_rounded(maps[:, :count]) for maps in own_passes],
                grid=side,
                boxes=None if side else edges,
            )
        )
    return shown


def _grid_side(boxes: np.ndarray) -> int | None:
    """The side of the square grid whose cells, row by row, are the boxes; None: not a grid."""
    side = math.isqrt(len(boxes))
    if side * side != len(boxes):
        return None
    y, x = np.divmod(np.arange(side * side), side)
    cells = np.stack([x, y, x + 1, y + 1], 1)
    return side if np.allclose(boxes * side, cells, atol=1e-3) else None


def caption_maps(
    captions: Sequence[CaptionEntry], attention: Tensor, vocabulary: AnyVocabulary
) -> list[CaptionMap]:
    """The weight that each element gives to each word, with the words as the model sees them.

    `attention (n, K, L)`; words beyond those of a caption are padding.
    """
    texts = words_read([entry.text for entry in captions], vocabulary)
    return [
        CaptionMap(caption_id=entry.id, words=words, weights=_rounded(weights[:, : len(words)]))
        for entry, words, weights in zip(captions, texts, attention.cpu(), strict=True)
    ]


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(value, _DIGITS) for value in row] for row in weights.tolist()]
