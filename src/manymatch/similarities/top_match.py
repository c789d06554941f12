"""MaxMatch's score for retrieval: the best pairs of elements, not only one-to-one pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.blocks import scored

_MOST_COMPARISONS = 4000
"""Number of comparisons of planes up to which insertion of planes is faster than `torch.topk`."""


def top_match(images: Tensor, texts: Tensor, k: int | None = None) -> Tensor:
    """The mean of `exp(c) - 1` over the k largest of all K L cosines.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        k: from 1 to K L; None: the size of the smaller set, as in `max_match`.

    Returns:
        `(n, m)` in [1/e - 1, e - 1].

    Raises:
        ValueError: k is out of range.

    Relations:
        For the default k the score is never less than `max_match`. With k = 1 it ranks as `mil`.

    References:
        Alomari et al., Maximal Matching Matters (MaxMatch), ACL 2025, whose retrieval takes the
        most similar pairs, one-to-one or not; the paper states neither their number nor whether
        `exp(c) - 1` or the cosine is averaged. The former is what training compares (eq. 4).
    """
    (_, n_image, _), (_, n_text, _) = images.shape, texts.shape
    k = min(n_image, n_text) if k is None else k
    if not 1 <= k <= n_image * n_text:
        raise ValueError(f"k = {k}: expected 1 to {n_image * n_text}, the number of cosines")

    def mean_of_best(cosines: Tensor) -> Tensor:
        return largest_planes(cosines.flatten(0, 1), k).exp().mean(0) - 1

    return scored(images, texts, mean_of_best)


def largest_planes(planes: Tensor, k: int) -> Tensor:
    """The k largest of `planes (N, n, m)`: `(k, n, m)`, in descending order."""
    if planes.requires_grad or k * len(planes) > _MOST_COMPARISONS:
        return planes.topk(k, dim=0).values
    best: list[Tensor] = []
    for plane in planes.unbind(0):
        for rank, kept in enumerate(best):
            best[rank], plane = torch.maximum(kept, plane), torch.minimum(kept, plane)
        if len(best) < k:
            best.append(plane)
    return torch.stack(best)
