"""How well images are ranked for sketches, where every image of a sketch's class is right.

For a query with R right images in the gallery, `hit(k)` = whether the k-th image is right, and
`precision(k)` = the share of right ones among the first k:

    map            (1 / R) sum over all k of hit(k) precision(k)
    map_at_200     the same over k <= 200, divided by the right ones among those 200
    map_at_200_r   the same, divided by min(R, 200)
    p_at_200       right ones among the first 200, divided by 200

Papers differ in mAP@200 without saying so. `map_at_200` is the form of the code that Doodle to
Search's successors share, and the one under which the paper's numbers are possible: on Sketchy it
prints 51.9 beside a P@200 of 40.8, but the other form is never above P@200 where R >= 200. All
are in percent, means over queries. Of images with equal scores the wrong ones come first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

CUT = 200
_SCORES = 2**24
"""Scores held at once."""
NAMES = ("map", "map_at_200", "map_at_200_r", "p_at_200")


def retrieval(
    queries: Tensor, labels: Tensor, gallery: Tensor, gallery_labels: Tensor, scores: int = _SCORES
) -> dict[str, float]:
    """The four metrics of cosine ranking; memory grows with the gallery, not with the queries.

    Args:
        queries, gallery: `(n, D)` and `(m, D)`, L2-normalised.
        labels, gallery_labels: `(n,)` and `(m,)`; every query's class is in the gallery.
        scores: so many are held at once at most (or one query's).
    """
    total = np.zeros(len(NAMES))
    for label in labels.unique():
        right = gallery_labels == label
        wrong_ones, right_ones = gallery[~right].T, gallery[right].T
        for block in queries[labels == label].split(max(1, scores // len(gallery))):
            total += _sums(_places((block @ wrong_ones).numpy(), (block @ right_ones).numpy()))
    return dict(zip(NAMES, (100 * total / len(queries)).tolist(), strict=True))


def _places(wrong: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """`(q, R)`: the ranks, from 1 and ascending, of the right images of q queries, by the scores of
    the wrong ones `(q, m - R)` and of theirs `(q, R)`. Sorting the two apart takes a tenth of the
    time of ordering all."""
    wrong.sort(axis=1)
    right.sort(axis=1)
    best_first = right[:, ::-1]
    ahead = [
        len(row) - np.searchsorted(row, own, side="left")
        for row, own in zip(wrong, best_first, strict=True)
    ]
    return np.stack(ahead) + np.arange(1, right.shape[1] + 1)


def _sums(places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The four metrics, summed over queries whose right images have the ranks `places (q, R)`."""
    count = places.shape[1]
    precision = np.arange(1, count + 1) / places
    near = places <= CUT
    found, gained = near.sum(1), (precision * near).sum(1)
    return np.array(
        [
            precision.mean(1).sum(),
            (gained / np.maximum(found, 1)).sum(),
            (gained / min(count, CUT)).sum(),
            (found / CUT).sum(),
        ]
    )
