"""Set elements of a few images and their captions as points of a plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

_PERPLEXITY = 30
"""t-SNE's usual one; less where there are not three times as many points."""
_STEPS = 500
"""Half of what is usual: some hundred points have come to rest by then."""
_CAPTIONS = 5
"""Captions shown of each image: data sets with more would drown their images."""


def project(images: Tensor, texts: Tensor, owner: Tensor, rows: list[int]) -> list[dict[str, Any]]:
    """t-SNE of the elements of the images `rows` and of their first captions.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`.
        owner: `(m,)` row of each caption's image.
        rows: the images.

    Returns:
        A point an element: `x`, `y`, `image` (its place in `rows`), `modality`, `element` (from 1)
        and `caption` (of the image, from 1; None for images). Equal inputs give equal points on
        one machine.
    """
    if not rows:
        return []
    vectors, points = [], []
    for place, row in enumerate(rows):
        captions = (owner == row).nonzero()[:_CAPTIONS, 0].tolist()
        sets = [(images[row], None), *((texts[c], k) for k, c in enumerate(captions, start=1))]
        for elements, caption in sets:
            vectors.append(elements)
            points += [_point(place, element, caption) for element in range(1, len(elements) + 1)]
    places = plane(normalize(torch.cat(vectors).float(), dim=1).cpu().numpy())
    return [
        point | {"x": round(x, 2), "y": round(y, 2)}
        for point, (x, y) in zip(points, places.tolist(), strict=True)
    ]


def _point(image: int, element: int, caption: int | None) -> dict[str, Any]:
    modality = "images" if caption is None else "texts"
    return {"image": image, "modality": modality, "element": element, "caption": caption}


def plane(vectors: np.ndarray) -> np.ndarray:
    """t-SNE of `(p, D)` as `(p, 2)`; vectors that are all one and the same share one point."""
    if len(vectors) < 3 or float(np.ptp(vectors, axis=0).max()) < 1e-6:
        return np.zeros((len(vectors), 2), np.float32)
    from sklearn.manifold import TSNE  # takes a second to import, and only sets need it

    perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
    model = TSNE(perplexity=perplexity, max_iter=_STEPS, init="pca", method="exact", random_state=0)
    points: np.ndarray = model.fit_transform(vectors)
    return points
