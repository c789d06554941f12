"""Sets of sampled queries: where each element looks, what it reads, and what it retrieves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from manymatch.batch.collate import collate
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.samples import Gallery, Queries, Stored
from manymatch.evaluation.sets.attention_maps import caption_maps, image_maps
from manymatch.evaluation.sets.elements import NearestItems, matching_elements
from manymatch.methods.base import Method
from manymatch.model.embed import Embedded, inference
from manymatch.results.sets import (
    CaptionAnswers,
    ElementAnswers,
    ImageAnswers,
    NearestCaption,
    NearestImage,
)
from manymatch.shards.prepare import Preparation
from manymatch.shards.sample import Sample

_Answer = TypeVar("_Answer")


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
            collate([prepare(image, prepare.random(image.key)) for image in images]).to(device)
        )


def _element_answers(
    embedded: Embedded,
    nearest: tuple[NearestItems, NearestItems],
    queries: Queries,
    gallery: Gallery,
) -> ElementAnswers:
    def caption_for(image: int, caption: int, score: float, element: int) -> NearestCaption:
        answer = gallery.retrieved_caption(image, caption, score)
        return NearestCaption(**answer.to_json(), element=element)

    def image_for(caption: int, image: int, score: float, element: int) -> NearestImage:
        answer = gallery.retrieved_image(image, caption, score)
        return NearestImage(**answer.to_json(), element=element)

    images, texts = embedded.images.vectors, embedded.texts.vectors
    captions_found = _answers(queries.images, images, texts, nearest[0], caption_for)
    images_found = _answers(queries.captions, texts, images, nearest[1], image_for)
    return ElementAnswers(
        images=[
            ImageAnswers(image_id=embedded.image_ids[row], elements=elements)
            for row, elements in zip(queries.images, captions_found, strict=True)
        ],
        captions=[
            CaptionAnswers(caption_id=embedded.caption_ids[row], elements=elements)
            for row, elements in zip(queries.captions, images_found, strict=True)
        ],
    )


def _answers(
    queries: Sequence[int],
    vectors: Tensor,
    gallery: Tensor,
    nearest: NearestItems,
    answer: Callable[[int, int, float, int], _Answer],
) -> list[list[list[_Answer]]]:
    """The answers of each query and each of its elements; `answer` takes the rows of query and
    item, the cosine, and which element of the item (from 1) is nearest."""
    items, cosines = nearest.items[queries], nearest.cosines[queries]
    matching = matching_elements(vectors[queries], gallery, items)
    return [
        [
            [
                answer(query, item, round(cosine, 4), element)
                for item, cosine, element in zip(*columns, strict=True)
            ]
            for columns in zip(*facts, strict=True)
        ]
        for query, *facts in zip(
            queries, items.tolist(), cosines.tolist(), matching.tolist(), strict=True
        )
    ]
