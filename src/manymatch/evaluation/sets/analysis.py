"""What the sets of a method with several elements each are made of, for metrics and report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manymatch.config.params import Elements
from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.samples import Queries, Stored
from manymatch.evaluation.sets.circular_variance import log_circular_variance
from manymatch.evaluation.sets.element_answers import Nearest, nearest
from manymatch.evaluation.sets.element_pairs import ElementPairs, element_pairs, winners
from manymatch.evaluation.sets.elements import Chosen, Modality, choices
from manymatch.evaluation.sets.projection import project
from manymatch.evaluation.sets.sampled_sets import sampled_sets
from manymatch.methods.base import Method
from manymatch.text.wordpieces import AnyVocabulary

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
    judgments: Judgments,
    vocabulary: AnyVocabulary,
) -> SetAnalysis | None:
    """Look into the sets of a split; None if neither modality has more than one element.

    Every number is of the whole split. One element against whole sets costs K times less than
    whole sets against each other: 18 s on one CPU core of the 5,000 images and 25,000 captions of
    COCO with K = 4 and D = 1,024, and there are 2K such evaluations.

    Args:
        method: what made the embeddings, and scores them.
        whole: `protocols.recall` of the whole sets.
        wanted: selections of elements to evaluate besides each one alone, and how many vectors
            are projected.
        queries: the images and captions whose attention and nearest items are shown.
        stored: images as the shards hold them.
        judgments: which pairs are true beyond the own ones.
    """
    images, texts = found.images.vectors, found.texts.vectors
    if max(images.shape[1], texts.shape[1]) == 1:
        return None
    recalls = [
        (
            choice,
            recall(
                method.score,
                *choice.of(found.images, found.texts),
                found.owner,
                t2i_score=method.t2i_score,
            ),
        )
        for choice in choices(found.images, found.texts, wanted)
    ]
    pairs = element_pairs(images, texts, found.owner)
    nearest_ones = nearest(images, texts), nearest(texts, images)
    return SetAnalysis(
        metrics={
            "gallery": len(images),
            "rsum": whole["rsum"],
            **_of_modality("images", images, pairs.share.sum(1), nearest_ones[0], recalls),
            **_of_modality("texts", texts, pairs.share.sum(0), nearest_ones[1], recalls),
        },
        shown={
            "gallery": {"images": len(images), "captions": len(texts)},
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
            **sampled_sets(method, found, nearest_ones, queries, stored, judgments, vocabulary),
            "projection": project(images, texts, wanted.projected),
        },
    )


def _of_modality(
    modality: Modality,
    vectors: Tensor,
    wins: Tensor,
    nearest_ones: Nearest,
    recalls: Iterable[tuple[Chosen, Recall]],
) -> dict[str, Any]:
    if vectors.shape[1] == 1:
        return {}
    return {
        modality: {
            "log_circular_variance": log_circular_variance(vectors),
            "log_circular_variance_squared": log_circular_variance(vectors, squared=True),
            "winners": winners(wins),
            "distinct": nearest_ones.distinct,
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
