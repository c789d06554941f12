"""Set elements of a split as points of a plane (MaxMatch, figure 3; DivE, figure A1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.samples import drawn_queries

SIDE = 1000
"""Of the square in which points lie: whole numbers are fine enough and short."""
_PERPLEXITY = 30
"""t-SNE's usual one; less where there are not three times as many points."""
_STEPS, _ANGLE = 400, 0.8
"""Fewer and coarser steps than sklearn's 1,000 and 0.5: a third of the time."""


def project(images: Tensor, texts: Tensor, most: int | None) -> dict[str, Any]:
    """t-SNE of the elements of a split, or of random sets of it.

    The sets are the same for every method with as many elements on the same split.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`.
        most: vectors drawn of each modality; t-SNE of 1,000 each takes about 3 s on one core. None:
            all vectors.

    Returns:
        Of `images` and `texts` how many `vectors` the split has, and the `places` of the drawn
        ones: of each set the (x, y) of each element, whole numbers from 0 to `SIDE`. Equal inputs
        give equal places on one machine.
    """
    count = max(len(images), len(texts))
    if most is not None:
        count = most // max(images.shape[1], texts.shape[1])
    sets = drawn_queries(len(images), len(texts), count)
    drawn = {"images": images[sets.images], "texts": texts[sets.captions]}
    vectors = torch.cat([each.flatten(0, 1) for each in drawn.values()])
    places = plane(normalize(vectors.float(), dim=1).cpu().numpy())
    first = len(places) - drawn["texts"].shape[:2].numel()
    parts = {"images": (images, places[:first]), "texts": (texts, places[first:])}
    return {
        name: {
            "vectors": whole.shape[:2].numel(),
            "places": part.reshape(-1, whole.shape[1], 2).tolist(),
        }
        for name, (whole, part) in parts.items()
    }


def plane(vectors: np.ndarray) -> np.ndarray:
    """t-SNE of `(p, D)` as whole numbers `(p, 2)` in the square; points that are all one, or
    fewer than three, lie in its middle."""
    if len(vectors) < 3 or float(np.ptp(vectors, axis=0).max()) < 1e-6:
        return np.full((len(vectors), 2), SIDE // 2)
    from sklearn.manifold import TSNE  # takes a second to import, and only sets need it
    from threadpoolctl import threadpool_limits

    model = TSNE(
        perplexity=min(_PERPLEXITY, (len(vectors) - 1) / 3),
        max_iter=_STEPS,
        angle=_ANGLE,
        init="pca",
        random_state=0,
    )
    # The sums of several threads would depend on who comes first, and waiting costs more here.
    with threadpool_limits(1):
        points: np.ndarray = model.fit_transform(vectors)
    low, high = points.min(0), points.max(0)
    scale = SIDE / (high - low).max()
    return np.rint(SIDE / 2 + (points - (low + high) / 2) * scale).astype(int)
