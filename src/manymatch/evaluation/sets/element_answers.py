"""What single elements retrieve: the items nearest to each element of a query's set.

Shown as in DivE (figures 4, A2, A3) and MaxMatch (figures 5 to 7). A failed set has elements that
all retrieve the same item.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.whole_rows import whole_rows
from manymatch.methods.base import Embeddings
from manymatch.similarities.mil import mil

ITEMS_PER_ELEMENT = 3
"""Items shown for each element."""


@dataclass(frozen=True)
class NearestItems:
    """The `items (n, K, depth)` nearest to each of the K elements of n queries, nearest first, and
    their `cosines`. On the CPU."""

    items: Tensor
    cosines: Tensor

    @property
    def distinct(self) -> float:
        """The mean number of different items that are nearest to a query's elements: from 1 (all
        elements retrieve the same item) to K."""
        first = self.items[:, :, 0].sort(1).values
        return 1 + (first.diff(dim=1) != 0).sum(1).double().mean().item()


def nearest_items(queries: Tensor, gallery: Tensor, depth: int = ITEMS_PER_ELEMENT) -> NearestItems:
    """Rank all items for each element of each query.

    The similarity of an element and an item is the cosine of the element and the item's nearest
    element. The papers do not say how an element meets an item's set.

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`, of any length but zero.
        depth: the number of items kept for each element, at most m.

    Memory beyond a normalised copy of both is bounded. The cost is n K m L D multiply-adds: all
    queries of COCO 5K (5,000 and 25,000 sets of 4 vectors of 1,024) take about 70 s a direction on
    one CPU core.

    Raises:
        DataError: a vector is not finite.
    """
    elements = Embeddings(normalize(queries, dim=2).flatten(0, 1)[:, None])
    items = Embeddings(normalize(gallery, dim=2))
    depth = min(depth, len(items))
    best = [scores.topk(depth, dim=1) for _, scores in whole_rows(_best_cosine, elements, items)]
    shape = *queries.shape[:2], depth
    return NearestItems(
        torch.cat([block.indices for block in best]).cpu().view(shape),
        torch.cat([block.values for block in best]).cpu().view(shape),
    )


def _best_cosine(elements: Embeddings, items: Embeddings) -> Tensor:
    return mil(elements.vectors, items.vectors)


def matching_elements(queries: Tensor, gallery: Tensor, items: Tensor) -> Tensor:
    """Which element (from 1) of each item is nearest to the element that retrieved the item.

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`.
        items: `(n, K, depth)` from `nearest_items`. All n are compared at once, so n must be small.

    Returns:
        `(n, K, depth)`, on the CPU.
    """
    candidates = normalize(gallery[items.to(gallery.device)], dim=4)
    return torch.einsum("nkd,nkild->nkil", queries, candidates).argmax(3).cpu() + 1
