"""The elements of sets: selections of elements, how far the elements of a set are apart, which
elements match (MaxMatch, figure 4), and what each retrieves by itself (DivE, table 5; shown as in
DivE's figures 4, A2, A3 and MaxMatch's figures 5 to 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.config.params import Elements
from manymatch.methods.shared.method import Embeddings
from manymatch.model.blocks import whole_rows
from manymatch.results import sets as results
from manymatch.results.sets import Modality
from manymatch.similarities.blocks import runs
from manymatch.similarities.sets import mil


@dataclass(frozen=True)
class Selection:
    """Some elements (from 1) of one modality's sets; the sets of the other modality stay whole."""

    modality: Modality
    elements: tuple[int, ...]

    @property
    def name(self) -> str:
        return "+".join(map(str, self.elements))

    def apply(self, images: Embeddings, texts: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Images and texts with only the selected elements."""
        rows = [element - 1 for element in self.elements]
        if self.modality == "images":
            return images.elements(rows), texts
        return images, texts.elements(rows)


def selections(images: Embeddings, texts: Embeddings, requested: Elements) -> list[Selection]:
    """Every single element of each modality with several elements, then those of the `requested`
    selections whose elements exist."""
    sides: tuple[tuple[Modality, Embeddings, Iterable[tuple[int, ...]]], ...]
    sides = ("images", images, requested.images), ("texts", texts, requested.texts)
    result = []
    for modality, embeddings, wanted in sides:
        size = embeddings.vectors.shape[1]
        single = [(element,) for element in range(1, size + 1)] if size > 1 else []
        existing = [elements for elements in wanted if 1 < size >= max(elements)]
        result += [
            Selection(modality, elements) for elements in dict.fromkeys([*single, *existing])
        ]
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


@dataclass(frozen=True)
class ElementPairs:
    """Statistics of all annotated pairs, float64 on the CPU: `share (K, L)` of pairs in which image
    element k and text element l match best (sums to 1), and their mean `cosine (K, L)`. `winner
    (m,)` is the image element k of each pair."""

    share: Tensor
    cosine: Tensor
    winner: Tensor

    def rounded(self) -> results.ElementPairs:
        """The same as result files hold it."""
        share, cosine = (
            [[round(value, 4) for value in row] for row in table.tolist()]
            for table in (self.share, self.cosine)
        )
        return results.ElementPairs(share=share, cosine=cosine)


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


def nearest_items(queries: Tensor, gallery: Tensor) -> NearestItems:
    """Rank all items for each element of each query.

    The similarity of an element and an item is the cosine of the element and the item's nearest
    element (MaxMatch, section 4.5: "the best-matched embedding from the test sample's set").

    Args:
        queries, gallery: vectors `(n, K, D)` and `(m, L, D)`, of any length but zero.

    Memory beyond a normalised copy of both is bounded. The cost is n K m L D multiply-adds: all
    queries of COCO 5K (5,000 and 25,000 sets of 4 vectors of 1,024) take about 70 s a direction on
    one CPU core.

    Raises:
        DataError: a vector is not finite.
    """
    elements = Embeddings(normalize(queries, dim=2).flatten(0, 1)[:, None])
    items = Embeddings(normalize(gallery, dim=2))
    depth = min(ITEMS_PER_ELEMENT, len(items))
    rows = whole_rows(lambda one, other: mil(one.vectors, other.vectors), elements, items)
    best = [scores.topk(depth, dim=1) for _, scores in rows]
    shape = *queries.shape[:2], depth
    return NearestItems(
        torch.cat([block.indices for block in best]).cpu().view(shape),
        torch.cat([block.values for block in best]).cpu().view(shape),
    )


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
