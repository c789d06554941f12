"""Pairs that methods rank first and that nobody judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from manymatch.results.runs import Direction
from manymatch.search.explore.explorer import UNJUDGED, Explorer
from manymatch.search.explore.lists import texts

Kind = Literal["new", "second"]


class Agreed(NamedTuple):
    """Pairs among the first items, the likeliest true pair first: rows of images and captions, how
    many methods `agree`, and the `share` of annotated pairs in the tables whose score is at most
    the pair's, as the mean of these methods."""

    images: np.ndarray
    captions: np.ndarray
    agree: np.ndarray
    share: np.ndarray


def agreed_pairs(explorer: Explorer, way: Direction, k: int) -> Agreed:
    """The pairs that methods rank among the first `k`."""
    keys, shares = [], []
    for method in explorer.methods.values():
        items, scores = method.ways[way].items, method.ways[way].scores
        best = items[:, :k].astype(np.int64)
        rows = np.broadcast_to(np.arange(len(best))[:, None], best.shape)
        keys.append(explorer.key(*explorer.pairs(way, rows, best)).ravel())
        own = np.sort(scores[explorer.annotated(way, items)])
        below = np.searchsorted(own, scores[:, :k].ravel(), side="right")
        shares.append(below / max(1, len(own)))
    pairs, inverse, agree = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    share = np.bincount(inverse, np.concatenate(shares)) / agree
    order = np.lexsort((-share, -agree))
    images, captions = np.divmod(pairs[order], len(explorer.ids["t2i"]))
    return Agreed(images, captions, agree[order], share[order])


def unjudged(
    explorer: Explorer, way: Direction, k: int, annotator: str, kind: Kind
) -> tuple[Agreed, np.ndarray]:
    """All pairs of `agreed_pairs`, and the places of those that nobody judged; with `second` of
    those that only others judged here. A pair that only others skipped counts as not judged."""
    if (way, k) not in explorer.agreed:
        explorer.agreed[way, k] = agreed_pairs(explorer, way, k)
    pairs: Agreed = explorer.agreed[way, k]
    own = explorer.voted(annotator, skipped=True)
    names = [name for name in explorer.votes if name != annotator]
    by_others = [explorer.voted(name, skipped=False) for name in names]
    others = np.concatenate([np.empty(0, np.int64), *by_others])
    keys = explorer.key(pairs.images, pairs.captions)
    if kind == "second":
        return pairs, np.flatnonzero(np.isin(keys, others) & ~np.isin(keys, own))
    open_pairs = explorer.marks(pairs.images, pairs.captions) == UNJUDGED
    return pairs, np.flatnonzero(open_pairs & ~np.isin(keys, np.concatenate([own, others])))


def pair_rows(explorer: Explorer, pairs: Agreed, places: np.ndarray) -> pa.Table:
    """Pairs as a table."""
    images, captions = pairs.images[places], pairs.captions[places]
    columns: dict[str, Sequence[Any]] = {
        "image": images.tolist(),
        "caption": captions.tolist(),
        "image_id": [explorer.ids["i2t"][row] for row in images.tolist()],
        "caption_id": [explorer.ids["t2i"][row] for row in captions.tolist()],
        "text": texts(explorer, "t2i", captions),
        "methods": pairs.agree[places].tolist(),
        "share": pairs.share[places].round(4).tolist(),
    }
    return pa.table(columns)
