"""MaxMatch's score for retrieval: the best pairs of elements, whether one-to-one or not."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.blocks import scored

_MOST_COMPARISONS = 4000
"""Comparisons of planes up to which taking in one plane after another beats `torch.topk`."""


def top_match(images: Tensor, texts: Tensor, k: int | None = None) -> Tensor:
    """Mean of `exp(c) - 1` over the k largest of all K L cosines.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        k: from 1 to K L; None is the size of the smaller set, as many as `max_match` averages.

    Returns:
        `(n, m)` in [1/e - 1, e - 1]; never less than `max_match` for the default k. With k = 1
        it ranks as `mil` does.

    References:
        Alomari et al., Maximal Matching Matters (MaxMatch), ACL 2025, whose retrieval takes the
        most similar pairs, one-to-one or not, and leaves their number open.
    """
    (_, n_image, _), (_, n_text, _) = images.shape, texts.shape
    k = min(n_image, n_text) if k is None else k
    if not 1 <= k <= n_image * n_text:
        raise ValueError(f"k = {k}: expected 1 to {n_image * n_text}, the cosines of two sets")

    def mean_of_best(cosines: Tensor) -> Tensor:
        return _largest(cosines.flatten(0, 1), k).exp().mean(0) - 1

    return scored(images, texts, mean_of_best)


def _largest(planes: Tensor, k: int) -> Tensor:
    """The k largest of `planes (N, n, m)`: `(k, n, m)`, in descending order."""
    if planes.requires_grad or k * len(planes) > _MOST_COMPARISONS:
        return planes.topk(k, dim=0).values
    best: list[Tensor] = []
    for plane in planes.unbind(0):
        for place, held in enumerate(best):
            best[place], plane = torch.maximum(held, plane), torch.minimum(held, plane)
        if len(best) < k:
            best.append(plane)
    return torch.stack(best)
