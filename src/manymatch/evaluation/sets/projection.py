"""Set elements of a split as points of a plane (MaxMatch, figure 3; DivE, figure A1)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.samples import draw_queries
from manymatch.results.sets import PLANE_SIDE, ProjectedSets, Projection
from manymatch.util.progress import working

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
    first_text = drawn[0].shape[:2].numel()
    return Projection(
        images=_projected(images, places[:first_text]), texts=_projected(texts, places[first_text:])
    )


def _projected(sets: Tensor, places: np.ndarray) -> ProjectedSets:
    vectors, elements = sets.shape[:2].numel(), sets.shape[1]
    rows = places.reshape(-1, elements, 2).tolist()
    return ProjectedSets(vectors=vectors, places=[[(x, y) for x, y in row] for row in rows])


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
