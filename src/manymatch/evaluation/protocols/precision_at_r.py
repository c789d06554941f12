"""Precision at R and R@1 where whatever shares a property is relevant: far too many pairs to list.

R is the number of a query's relevant items in the gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.blocks import Score
from manymatch.evaluation.ranking.whole_rows import SCORES_AT_ONCE, whole_rows
from manymatch.methods.base import Embeddings

Relevant = Callable[[Tensor, Tensor], Iterator[Tensor]]
"""`(rows (q,) of queries, rows (g,) of items) -> masks (q, g)`, one a kind of relevance. Each query
has a relevant item."""


def both_ways(subject: Subject, chosen: Tensor, relevant: Relevant) -> dict[str, Tensor]:
    """`precision_and_first` of `i2t` and `t2i` where it is their images that make two items match.

    Args:
        chosen: `(n,)` which images count, as queries and as items; so do their captions.
        relevant: of rows of images.
    """
    found, owner = subject.found, subject.found.owner
    chosen_texts = chosen[owner]
    i2t = precision_and_first(
        subject.score,
        found.images,
        found.texts,
        lambda images, texts: relevant(images, owner[texts]),
        asked=chosen,
        offered=chosen_texts,
    )
    t2i = precision_and_first(
        subject.from_texts,
        found.texts,
        found.images,
        lambda texts, images: relevant(owner[texts], images),
        asked=chosen_texts,
        offered=chosen,
    )
    return {"i2t": i2t, "t2i": t2i}


def precision_and_first(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    relevant: Relevant,
    *,
    asked: Tensor,
    offered: Tensor,
    scores_at_once: int = SCORES_AT_ONCE,
) -> Tensor:
    """Means over the queries `(kinds, 2)`: precision at R and R@1, in percent, float64.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        asked: `(queries,)` which of them count.
        offered: `(gallery,)` which items are ranked; the others are not there.

    Ties are pessimistic: an irrelevant item of equal score ranks before a relevant one.

    Raises:
        DataError: a score is not finite.
    """
    items = offered.nonzero()[:, 0]
    parts = []
    for numbers, found in whole_rows(score, queries, gallery, asked, scores_at_once):
        scores = found[:, items.to(found.device)]
        ordered = scores.sort(1, descending=True).values
        kinds = [_per_query(scores, ordered, mask) for mask in relevant(numbers, items)]
        parts.append(torch.stack(kinds))
    return 100 * torch.cat(parts, 1).mean(1)


def _per_query(scores: Tensor, ordered: Tensor, relevant: Tensor) -> Tensor:
    """`(q, 2)` from `scores (q, g)`, the same in descending order, and which are `relevant`.

    Of the items that score at least as high as the R-th, the irrelevant ones are in the first R,
    unless relevant ones of a higher score leave them no room.
    """
    relevant = relevant.to(scores.device)
    count = relevant.sum(1)
    least = ordered.gather(1, count[:, None] - 1)
    higher = ((scores > least) & relevant).sum(1)
    wrong = ((scores >= least) & ~relevant).sum(1)
    found = torch.maximum(higher, count - wrong)
    best_right = scores.masked_fill(~relevant, -torch.inf).amax(1)
    best_wrong = scores.masked_fill(relevant, -torch.inf).amax(1)
    first = (best_right > best_wrong).double()
    return torch.stack([found.double() / count, first], 1).cpu()
