"""Any similarity of sets, applied to sets of unequal size."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from manymatch.similarities.pairs import full_precision


def of_unequal(
    similarity: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    texts: Tensor,
    image_mask: Tensor | None,
    text_mask: Tensor | None,
) -> Tensor:
    """The `similarity` of each pair of sets, of their real elements alone.

    Sets of equal size are compared together, without padding. The result is exact for every
    similarity. The cost grows with the number of distinct sizes.

    Args:
        similarity: `(n, K, D), (m, L, D) -> (n, m)`; the score of a pair depends on no other pair.
        images: `(n, K, D)`.
        texts: `(m, L, D)`.
        image_mask, text_mask: `(n, K)` and `(m, L)` bool, True for real elements; None: all are.

    Raises:
        ValueError: a set has no real element.
    """
    if image_mask is None and text_mask is None:
        return similarity(images, texts)
    scores = full_precision(images).new_empty(len(images), len(texts))
    columns = _by_size(texts, text_mask)
    for row, cut_images in _by_size(images, image_mask):
        for column, cut_texts in columns:
            scores[row[:, None], column] = similarity(cut_images, cut_texts)
    return scores


def _by_size(sets: Tensor, mask: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """For each size the rows `(s,)` of the sets of this size, and their elements `(s, size, D)`."""
    if mask is None:
        mask = torch.ones(sets.shape[:2], dtype=torch.bool, device=sets.device)
    sizes = mask.sum(1)
    if not sizes.all():
        raise ValueError("a set has no real element: its mask is False throughout")
    groups = []
    for size in sizes.unique().tolist():
        rows = (sizes == size).nonzero()[:, 0]
        groups.append((rows, sets[rows][mask[rows]].view(len(rows), size, -1)))
    return groups
