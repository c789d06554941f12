"""Sampled queries' sets: where each element looks, what it reads, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.embed import Embedded, inference
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.samples import Gallery, Queries, Stored
from manymatch.evaluation.sets.attention_maps import caption_maps, image_maps
from manymatch.evaluation.sets.element_answers import Nearest, met_elements
from manymatch.methods.base import Method
from manymatch.shards.collate import collate
from manymatch.shards.prepare import Preparation
from manymatch.shards.sample import Sample
from manymatch.text.wordpieces import AnyVocabulary


def sampled_sets(
    method: Method,
    found: Embedded,
    nearest_ones: tuple[Nearest, Nearest],
    queries: Queries,
    stored: Stored,
    judgments: Judgments,
    vocabulary: AnyVocabulary,
) -> dict[str, Any]:
    """`image_maps`, `caption_maps` and `nearest` of the queries.

    There are no maps of a modality whose sets come without attention.

    Args:
        nearest_ones: what the elements of all images and of all captions find.
        stored: images as the shards hold them.
    """
    of_images, of_captions = nearest_ones
    rows = (
        torch.tensor(queries.images, dtype=torch.int64),
        found.owner[of_images.items[queries.images]],
        found.owner[queries.captions],
        of_captions.items[queries.captions],
    )
    gallery = Gallery.of(rows, found.owner, judgments, stored)
    images = [gallery.images[row] for row in queries.images]
    entries = [gallery.caption(row) for row in queries.captions]
    looks, reads = found.images.attention, found.texts.attention
    x, y = found.images.vectors, found.texts.vectors
    captions_found = _answers(queries.images, x, y, of_images, gallery.retrieved_caption)
    images_found = _answers(
        queries.captions,
        y,
        x,
        of_captions,
        lambda c, i, score: gallery.retrieved_image(i, c, score),
    )
    return {
        "image_maps": []
        if looks is None
        else image_maps(images, looks[queries.images], _passes(method, images, vocabulary)),
        "caption_maps": []
        if reads is None
        else caption_maps(entries, reads[queries.captions], vocabulary),
        "nearest": {
            "images": [
                {"image_id": image.image_id, "elements": elements}
                for image, elements in zip(images, captions_found, strict=True)
            ],
            "captions": [
                {"caption_id": entry.id, "elements": elements}
                for entry, elements in zip(entries, images_found, strict=True)
            ],
        },
    }


def _passes(method: Method, images: Sequence[Sample], vocabulary: AnyVocabulary) -> Tensor | None:
    """`Method.image_passes` of these images alone: those of a split would fill the memory."""
    if not images:
        return None
    prepare = Preparation(vocabulary, None, None, None)
    device = next(method.parameters()).device
    with inference(method, device):
        return method.image_passes(collate([prepare(image) for image in images]).to(device))


def _answers(
    queries: Sequence[int],
    vectors: Tensor,
    gallery: Tensor,
    nearest_ones: Nearest,
    answer: Callable[[int, int, float], dict[str, Any]],
) -> list[list[list[dict[str, Any]]]]:
    """Of each query and each of its elements what the element finds; `element` is that of the
    answer's set which is nearest, from 1."""
    items, cosines = nearest_ones.items[queries], nearest_ones.cosines[queries]
    met = met_elements(vectors[queries], gallery, items)
    return [
        [
            [
                answer(query, item, round(cosine, 4)) | {"element": element}
                for item, cosine, element in zip(*columns, strict=True)
            ]
            for columns in zip(*of_query, strict=True)
        ]
        for query, *of_query in zip(
            queries, items.tolist(), cosines.tolist(), met.tolist(), strict=True
        )
    ]
