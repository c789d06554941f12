"""What the sets of a method with several elements each are made of, for metrics and report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manymatch.config.params import Elements
from manymatch.datasets.wordpieces import AnyVocabulary
from manymatch.evaluation.attention_maps import caption_maps, image_maps
from manymatch.evaluation.blocks import rows
from manymatch.evaluation.circular_variance import log_circular_variance
from manymatch.evaluation.element_pairs import ElementPairs, element_pairs, winners
from manymatch.evaluation.elements import Chosen, Modality, choices
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.metrics import rounded
from manymatch.evaluation.projection import project
from manymatch.evaluation.protocols import recall
from manymatch.evaluation.samples import Queries, Stored
from manymatch.methods.base import Method

_MOST_CAPTIONS, _IMAGES = 5000, 1000
"""With more captions, elements are evaluated on the first images alone: 2K more evaluations of the
whole would take longer than everything else."""
_PROJECTED = 6
"""Images whose elements are drawn together: as many as can be told apart by colour."""

Recall = dict[str, Any]


@dataclass(frozen=True)
class SetAnalysis:
    """`metrics`: numbers for the metrics file; `shown`: what `sets.json` holds for the report."""

    metrics: dict[str, Any]
    shown: dict[str, Any]


def analyse_sets(
    method: Method,
    found: Embedded,
    whole: Recall,
    wanted: Elements,
    queries: Queries,
    stored: Stored,
    vocabulary: AnyVocabulary,
) -> SetAnalysis | None:
    """Look into the sets of a split; None if neither modality has more than one element.

    Args:
        method: what made the embeddings, and scores them.
        whole: `protocols.recall` of the whole sets on the whole split.
        wanted: selections of elements to evaluate besides each one alone.
        queries: the images and captions whose attention is shown.
        stored: images as the shards hold them.
    """
    if max(found.images.vectors.shape[1], found.texts.vectors.shape[1]) == 1:
        return None
    recall_by = partial(recall, method.score, t2i_score=method.t2i_score)
    gallery = _gallery(found)
    parts = gallery.images, gallery.texts
    if gallery is not found:
        whole = recall_by(*parts, gallery.owner)
    recalls = [
        (choice, recall_by(*choice.of(*parts), gallery.owner)) for choice in choices(*parts, wanted)
    ]
    images, texts = found.images.vectors, found.texts.vectors
    pairs = element_pairs(images, texts, found.owner)
    projected = queries.images[:_PROJECTED]
    return SetAnalysis(
        metrics={
            "gallery": len(gallery.images),
            "rsum": whole["rsum"],
            **_of_modality("images", images, pairs.share.sum(1), recalls),
            **_of_modality("texts", texts, pairs.share.sum(0), recalls),
        },
        shown={
            "gallery": {"images": len(gallery.images), "captions": len(gallery.texts)},
            "whole": rounded(whole),
            "chosen": [
                {
                    "modality": choice.modality,
                    "elements": list(choice.elements),
                    "recall": rounded(values),
                }
                for choice, values in recalls
            ],
            "pairs": _shown_pairs(pairs),
            **_attention(found, queries, stored, vocabulary),
            "projection": {
                "images": [found.image_ids[row] for row in projected],
                "points": project(images, texts, found.owner, projected),
            },
        },
    )


def _gallery(found: Embedded) -> Embedded:
    """What elements are evaluated on: the split, or its first images if it is large."""
    if len(found.texts) <= _MOST_CAPTIONS:
        return found
    images = min(_IMAGES, len(found.images))
    captions = int((found.owner < images).sum())
    return replace(
        found,
        images=rows(found.images, slice(0, images)),
        texts=rows(found.texts, slice(0, captions)),
        image_ids=found.image_ids[:images],
        caption_ids=found.caption_ids[:captions],
        owner=found.owner[:captions],
    )


def _of_modality(
    modality: Modality, vectors: Tensor, wins: Tensor, recalls: Iterable[tuple[Chosen, Recall]]
) -> dict[str, Any]:
    if vectors.shape[1] == 1:
        return {}
    return {
        modality: {
            "log_circular_variance": log_circular_variance(vectors),
            "winners": winners(wins),
            "rsum_of": {
                choice.name: values["rsum"]
                for choice, values in recalls
                if choice.modality == modality
            },
        }
    }


def _shown_pairs(pairs: ElementPairs) -> dict[str, Any]:
    return {
        name: [[round(value, 4) for value in row] for row in table.tolist()]
        for name, table in (("share", pairs.share), ("cosine", pairs.cosine))
    }


def _attention(
    found: Embedded, queries: Queries, stored: Stored, vocabulary: AnyVocabulary
) -> dict[str, Any]:
    """The maps of the queries; none of a modality whose sets come without attention."""
    owners = found.owner[queries.captions].tolist()
    needed = sorted({*queries.images, *owners})
    samples = dict(zip(needed, stored(needed), strict=True))
    captions = [
        samples[owner].captions[row - int(torch.searchsorted(found.owner, owner))]
        for row, owner in zip(queries.captions, owners, strict=True)
    ]
    images = [samples[row] for row in queries.images]
    looks, reads = found.images.attention, found.texts.attention
    return {
        "image_maps": [] if looks is None else image_maps(images, looks[queries.images]),
        "caption_maps": []
        if reads is None
        else caption_maps(captions, reads[queries.captions], vocabulary),
    }
