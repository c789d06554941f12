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

import torch
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
    total = torch.zeros(len(NAMES), dtype=torch.float64)
    for label in labels.unique():
        right = gallery_labels == label
        # Wrong images first, and a stable sort: among equal scores they stay ahead.
        ordered = torch.cat([gallery[~right], gallery[right]])
        first = int((~right).sum())
        for block in queries[labels == label].split(max(1, scores // len(gallery))):
            order = (block @ ordered.T).sort(dim=1, descending=True, stable=True).indices
            total += _sums(order >= first)
    return dict(zip(NAMES, (100 * total / len(queries)).tolist(), strict=True))


def _sums(hits: Tensor) -> Tensor:
    """The four metrics of queries `hits (q, m)`, summed."""
    cut = min(CUT, hits.shape[1])
    places = torch.arange(1, hits.shape[1] + 1, dtype=torch.float64)
    found = hits.cumsum(1)
    gained = (hits * found / places).cumsum(1)
    right, near = found[:, -1], found[:, cut - 1]
    return torch.stack(
        [
            (gained[:, -1] / right).sum(),
            (gained[:, cut - 1] / near.clamp(min=1)).sum(),
            (gained[:, cut - 1] / right.clamp(max=CUT)).sum(),
            (near.double() / CUT).sum(),
        ]
    )
