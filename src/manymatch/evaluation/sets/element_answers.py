"""What one element finds: the items nearest to each element of a query's set.

Shown as in DivE (figures 4, A2, A3) and MaxMatch (figures 5 to 7), where elements that all find
the same item are the failure.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.whole_rows import whole_rows
from manymatch.methods.base import Embeddings
from manymatch.similarities.mil import mil

SHOWN = 3
"""Items shown of each element."""


@dataclass(frozen=True)
class Nearest:
    """The `items (n, K, depth)` nearest to each of the K elements of n queries, nearest first, and
    their `cosines`. On the CPU."""

    items: Tensor
    cosines: Tensor

    @property
    def distinct(self) -> float:
        """How many different items are the nearest ones of a query's elements: the mean over the
        queries, from 1 (all elements find the same item) to K."""
        first = self.items[:, :, 0].sort(1).values
        return 1 + (first.diff(dim=1) != 0).sum(1).double().mean().item()


def nearest(queries: Tensor, gallery: Tensor, depth: int = SHOWN) -> Nearest:
    """Rank all items for each element of each query.

    An item is as near to an element as the item's nearest element is: by the best cosine. The
    papers leave open how an item's set is met.

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`, of any length but zero.
        depth: how many items each element finds; m, if there are fewer.

    Memory beyond a normalised copy of both is bounded. n K m L D multiply-adds: all queries of
    COCO 5K (5,000 and 25,000 sets of 4 vectors of 1,024) take about 70 s a direction on one CPU
    core.

    Raises:
        DataError: a vector is not finite.
    """
    elements = Embeddings(normalize(queries, dim=2).flatten(0, 1)[:, None])
    items = Embeddings(normalize(gallery, dim=2))
    depth = min(depth, len(items))
    best = [scores.topk(depth, dim=1) for _, scores in whole_rows(_best_cosine, elements, items)]
    shape = *queries.shape[:2], depth
    return Nearest(
        torch.cat([block.indices for block in best]).cpu().view(shape),
        torch.cat([block.values for block in best]).cpu().view(shape),
    )


def _best_cosine(elements: Embeddings, items: Embeddings) -> Tensor:
    return mil(elements.vectors, items.vectors)


def met_elements(queries: Tensor, gallery: Tensor, items: Tensor) -> Tensor:
    """Which element (from 1) of each item is nearest to the element that found the item.

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`.
        items: `(n, K, depth)`, as `nearest` gives them; all n at once, so few queries at a time.

    Returns:
        `(n, K, depth)`, on the CPU.
    """
    candidates = normalize(gallery[items.to(gallery.device)], dim=4)
    return torch.einsum("nkd,nkild->nkil", queries, candidates).argmax(3).cpu() + 1
