"""Metrics of the sets of a method that embeds a sample as several elements, and the details that
the report shows: how far the elements of a set are apart, which elements match (MaxMatch, figure
4), whether an element stands for an object, and t-SNE."""

import math
from collections.abc import Iterable
from itertools import combinations
from typing import Any, NamedTuple

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
from manymatch.evaluation.sets.sampled_sets import nearest_items, sampled_sets
from manymatch.methods.shared.method import Method
from manymatch.model.embed import Embedded
from manymatch.results import sets as results
from manymatch.results.retrieval import Counts, Recall
from manymatch.results.sets import (
    PLANE_SIDE,
    ElementMetrics,
    Meanings,
    Modality,
    ProjectedSets,
    Projection,
    SelectionRecall,
    SetDetails,
    SetMetrics,
)
from manymatch.shards.sample import Sample
from manymatch.similarities.blocks import runs
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
    images, texts = embedded.images, embedded.texts
    vectors: dict[Modality, Tensor] = {"images": images.vectors, "texts": texts.vectors}
    sizes: dict[Modality, int] = {modality: own.shape[1] for modality, own in vectors.items()}
    if max(sizes.values()) == 1:
        return None
    selected = []
    rsums: dict[Modality, dict[str, float]] = {modality: {} for modality in sizes}
    picks = selections(sizes, settings)
    for modality, elements in track(picks, "rank by selected elements", len(picks), quiet=True):
        rows = [element - 1 for element in elements]
        sides = (
            (images.elements(rows), texts)
            if modality == "images"
            else (images, texts.elements(rows))
        )
        values = recall(method.score, *sides, embedded.image_index, t2i_score=method.t2i_score)
        rsums[modality]["+".join(map(str, elements))] = values["rsum"]
        shown = Recall.model_validate(rounded(values))
        selected.append(SelectionRecall(modality=modality, elements=list(elements), recall=shown))
    pairs = element_pairs(images.vectors, texts.vectors, embedded.image_index)
    wins = {"images": pairs.share.sum(1), "texts": pairs.share.sum(0)}
    nearest = (
        nearest_items(images.vectors, texts.vectors),
        nearest_items(texts.vectors, images.vectors),
    )
    measured: dict[str, Any] = {
        modality: ElementMetrics(
            log_circular_variance=log_circular_variance(vectors[modality]),
            log_circular_variance_squared=log_circular_variance(vectors[modality], squared=True),
            winners=winners(wins[modality]),
            distinct=items.distinct,
            rsum_of=rsums[modality],
        )
        for modality, items in zip(vectors, nearest, strict=True)
        if sizes[modality] > 1
    }
    if sizes["images"] > 1 and (meant := meanings(stored(range(len(images))), pairs.winner)):
        measured["meanings"] = meant
    share, cosine = (
        [[round(value, 4) for value in row] for row in table.tolist()] for table in pairs[:2]
    )
    details = SetDetails(
        gallery=Counts(images=len(images), captions=len(texts)),
        whole=Recall.model_validate(rounded(whole)),
        selections=selected,
        pairs=results.ElementPairs(share=share, cosine=cosine),
        **sampled_sets(method, embedded, nearest, queries, stored, judgments, vocabulary),
        projection=project(images.vectors, texts.vectors, settings.projected),
    )
    return SetMetrics(gallery=len(images), rsum=whole["rsum"], **measured), details


def selections(
    sizes: dict[Modality, int], requested: Elements
) -> list[tuple[Modality, tuple[int, ...]]]:
    """Which elements (from 1) of one modality's sets are ranked, with whole sets of the other: each
    single element of the modalities whose `sizes` are above 1, then those of the `requested`
    selections whose elements exist."""
    result = []
    for modality, size in sizes.items():
        single = [(element,) for element in range(1, size + 1)] if size > 1 else []
        wanted: Iterable[tuple[int, ...]] = getattr(requested, modality)
        existing = [elements for elements in wanted if 1 < size >= max(elements)]
        result += [(modality, elements) for elements in dict.fromkeys([*single, *existing])]
    return result


_SETS_AT_ONCE = 4096
_LEAST = 1e-12
"""A lower bound, because the log of the variance of equal elements would be infinite."""


def circular_variance(vectors: Tensor, *, squared: bool = False) -> Tensor:
    """`1 - ||mean of the set's unit vectors||` of each set, in double precision.

    0 if all elements have the same direction; 1 if they cancel out.

    Args:
        vectors: `(n, K, D)`, of any length but zero.
        squared: use the squared norm, as MaxMatch does.

    Returns:
        `(n,)` float64 in 0..1.

    References:
        Kim et al., DivE, CVPR 2023, section 4.6. Squared: Alomari et al., MaxMatch, ACL 2025,
        table 4.
    """
    norms = normalize(vectors.double(), dim=2).mean(1).norm(dim=1)
    return (1 - (norms.square() if squared else norms)).clamp_min(0.0)


def log_circular_variance(vectors: Tensor, *, squared: bool = False) -> float:
    """The natural logarithm of the mean `circular_variance` of n sets `(n, K, D)`."""
    parts = [
        circular_variance(vectors[run], squared=squared)
        for run in runs(len(vectors), _SETS_AT_ONCE)
    ]
    return math.log(max(torch.cat(parts).mean().item(), _LEAST))


_PAIRS_AT_ONCE = 2048


class ElementPairs(NamedTuple):
    """Statistics of all annotated pairs, float64 on the CPU: `share (K, L)` of pairs in which image
    element k and text element l match best (sums to 1), and their mean `cosine (K, L)`. `winner
    (m,)` is the image element k of each pair."""

    share: Tensor
    cosine: Tensor
    winner: Tensor


def element_pairs(images: Tensor, texts: Tensor, image_index: Tensor) -> ElementPairs:
    """Compare the elements of each caption with those of its image.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`, m >= 1.
        image_index: `(m,)` row of each caption's image.
    """
    best = torch.empty(len(texts), dtype=torch.int64)
    total = torch.zeros(images.shape[1], texts.shape[1], dtype=torch.float64)
    for run in runs(len(texts), _PAIRS_AT_ONCE):
        positives = images[image_index[run].to(images.device)]
        cosine = normalize(positives, dim=2) @ normalize(texts[run], dim=2).mT
        best[run] = cosine.flatten(1).argmax(1).cpu()
        total += cosine.sum(0, dtype=torch.float64).cpu()
    wins = torch.bincount(best, minlength=total.numel()).double().view_as(total)
    return ElementPairs(wins / len(texts), total / len(texts), best // texts.shape[1])


def winners(share: Tensor) -> float:
    """The effective number of elements that win, by their shares `(K,)` of the best pairs: the
    exponential of the entropy, from 1 (always the same element) to K (all equally often).

    A similarity of best pairs alone (MIL) never uses an element that does not win. Such an element
    may still matter to a similarity of all elements.
    """
    return torch.special.entr(share.double()).sum().exp().item()


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
