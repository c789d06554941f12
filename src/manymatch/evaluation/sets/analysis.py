"""Metrics and drawings of the sets of a method that embeds a sample as several elements."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.params import Elements
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.samples import Queries, Stored, draw_queries
from manymatch.evaluation.sets.elements import (
    NearestItems,
    Selection,
    element_pairs,
    log_circular_variance,
    nearest_items,
    selections,
    winners,
)
from manymatch.evaluation.sets.sampled_sets import sampled_sets
from manymatch.methods.shared.method import Method
from manymatch.model.embed import Embedded
from manymatch.results.retrieval import Recall
from manymatch.results.sets import (
    PLANE_SIDE,
    ElementMetrics,
    GallerySize,
    Meanings,
    Modality,
    ProjectedSets,
    Projection,
    SelectionRecall,
    SetDetails,
    SetMetrics,
)
from manymatch.shards.sample import Sample
from manymatch.util.progress import track, working


def analyse_sets(
    method: Method,
    embedded: Embedded,
    whole: dict[str, Any],
    settings: Elements,
    queries: Queries,
    stored: Stored,
    judgments: Judgments,
    vocabulary: AnyVocabulary,
) -> tuple[SetMetrics, SetDetails] | None:
    """Metrics of the sets of a split, not yet rounded, for the metrics file, and details for the
    report; None if both modalities have single vectors.

    Every number is of the whole split. One element against whole sets costs K times less than
    whole sets against each other: 18 s on one CPU core for the 5,000 images and 25,000 captions of
    COCO with K = 4 and D = 1,024, and there are 2K such evaluations.

    `whole` is `protocols.recall` of the whole sets; `queries` are the images and captions whose
    attention and nearest items are shown.
    """
    images, texts = embedded.images.vectors, embedded.texts.vectors
    if max(images.shape[1], texts.shape[1]) == 1:
        return None
    selected = selections(embedded.images, embedded.texts, settings)
    recalls = [
        (
            selection,
            recall(
                method.score,
                *selection.apply(embedded.images, embedded.texts),
                embedded.image_index,
                t2i_score=method.t2i_score,
            ),
        )
        for selection in track(selected, "rank by selected elements", len(selected), quiet=True)
    ]
    pairs = element_pairs(images, texts, embedded.image_index)
    nearest = nearest_items(images, texts), nearest_items(texts, images)
    measured: dict[str, Any] = {
        **_element_metrics("images", images, pairs.share.sum(1), nearest[0], recalls),
        **_element_metrics("texts", texts, pairs.share.sum(0), nearest[1], recalls),
    }
    if images.shape[1] > 1 and (meant := meanings(stored(range(len(images))), pairs.winner)):
        measured["meanings"] = meant
    details = SetDetails(
        gallery=GallerySize(images=len(images), captions=len(texts)),
        whole=Recall.model_validate(rounded(whole)),
        selections=[
            SelectionRecall(
                modality=selection.modality,
                elements=list(selection.elements),
                recall=Recall.model_validate(rounded(values)),
            )
            for selection, values in recalls
        ],
        pairs=pairs.rounded(),
        **sampled_sets(method, embedded, nearest, queries, stored, judgments, vocabulary),
        projection=project(images, texts, settings.projected),
    )
    return SetMetrics(gallery=len(images), rsum=whole["rsum"], **measured), details


def _element_metrics(
    modality: Modality,
    vectors: Tensor,
    wins: Tensor,
    nearest: NearestItems,
    recalls: Iterable[tuple[Selection, dict[str, Any]]],
) -> dict[str, ElementMetrics]:
    """The metrics under the modality's name; nothing for single vectors."""
    if vectors.shape[1] == 1:
        return {}
    metrics = ElementMetrics(
        log_circular_variance=log_circular_variance(vectors),
        log_circular_variance_squared=log_circular_variance(vectors, squared=True),
        winners=winners(wins),
        distinct=nearest.distinct,
        rsum_of={
            selection.name: values["rsum"]
            for selection, values in recalls
            if selection.modality == modality
        },
    )
    return {modality: metrics}


def meanings(samples: Iterable[Sample], winner: Tensor) -> Meanings | None:
    """Compare what two captions of an image speak of with the image elements that they match best.

    Two captions have a common object if their scene graphs have a common name. "By chance" is the
    mean over all permutations of the scene graphs among the captions of each image. The mean is
    exact, because every pair of an image's captions is then as likely as another.

    Args:
        samples: all images of the split, in table order.
        winner: `(m,)` image element of each caption's best pair (`ElementPairs.winner`).

    Returns:
        None if all pairs of captions of an image have a common object, or none has.
    """
    elements = iter(winner.tolist())
    totals = np.zeros(5)
    for sample in samples:
        captions = [(next(elements), set(caption.graph.names)) for caption in sample.captions]
        same = np.array([a == b for (a, _), (b, _) in combinations(captions, 2)])
        common = np.array([bool(a & b) for (_, a), (_, b) in combinations(captions, 2)])
        if len(same):
            expected = same.sum() * common.mean()
            totals += len(same), same.sum(), common.sum(), (same & common).sum(), expected
    pairs, same_pairs, common_pairs, both, both_by_chance = totals.tolist()
    if not 0 < common_pairs < pairs:
        return None
    others = pairs - common_pairs
    return Meanings(
        together=100 * both / common_pairs,
        together_by_chance=100 * both_by_chance / common_pairs,
        apart=100 - 100 * (same_pairs - both) / others,
        apart_by_chance=100 - 100 * (same_pairs - both_by_chance) / others,
    )


_PERPLEXITY = 30
"""The usual perplexity of t-SNE; smaller with fewer than three times as many points."""
_STEPS, _ANGLE = 400, 0.8
"""Fewer and coarser steps than the 1,000 and 0.5 of sklearn: a third of the time."""


def project(images: Tensor, texts: Tensor, most: int | None) -> Projection:
    """t-SNE of the elements of a split, or of random sets of the split.

    Methods with the same number of elements show the same sets of a split. Equal inputs give equal
    places on one machine.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`.
        most: how many vectors of each modality are drawn (None: all). t-SNE of 1,000 vectors of
            each modality takes about 3 s on one core.
    """
    count = max(len(images), len(texts))
    if most is not None:
        count = most // max(images.shape[1], texts.shape[1])
    rows = draw_queries(len(images), len(texts), count)
    drawn = images[rows.images], texts[rows.captions]
    vectors = torch.cat([sets.flatten(0, 1) for sets in drawn])
    places = plane(normalize(vectors.float(), dim=1).cpu().numpy())
    halves: Any = np.split(places, [drawn[0].shape[:2].numel()])
    return Projection(
        **{
            side: ProjectedSets(
                vectors=sets.shape[:2].numel(), places=half.reshape(-1, sets.shape[1], 2).tolist()
            )
            for side, sets, half in zip(("images", "texts"), (images, texts), halves, strict=True)
        }
    )


def plane(vectors: np.ndarray) -> np.ndarray:
    """t-SNE of `(p, D)` as whole numbers `(p, 2)` in a square of side `PLANE_SIDE`.

    Fewer than three points, or points that are all equal, lie in the middle.
    """
    if len(vectors) < 3 or float(np.ptp(vectors, axis=0).max()) < 1e-6:
        return np.full((len(vectors), 2), PLANE_SIDE // 2)
    from sklearn.manifold import TSNE  # the import takes a second, and only sets need it
    from threadpoolctl import threadpool_limits

    model = TSNE(
        perplexity=min(_PERPLEXITY, (len(vectors) - 1) / 3),
        max_iter=_STEPS,
        angle=_ANGLE,
        init="pca",
        random_state=0,
    )
    # The sums of several threads would depend on their timing, and waiting costs more here.
    with threadpool_limits(1), working(f"t-SNE of {len(vectors)} vectors"):
        points: np.ndarray = model.fit_transform(vectors)
    low, high = points.min(0), points.max(0)
    scale = PLANE_SIDE / (high - low).max()
    return np.rint(PLANE_SIDE / 2 + (points - (low + high) / 2) * scale).astype(int)
