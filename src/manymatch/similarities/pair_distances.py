"""Euclidean distances between all elements of all sets."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.pairs import full_precision


def pair_distances(images: Tensor, texts: Tensor) -> Tensor:
    """`||x - y||` of the elements x of `images (n, K, D)` and y of `texts (m, L, D)`.

    The computation is never in half precision. Large blocks expand the square into one matrix
    product.

    Returns:
        `(n, m, K, L)`; the gradient is 0 where two elements are equal.

    Relations:
        `pair_cosines` compares elements of length 1. Here elements may have any length, as the
        samples of PCME's Gaussians.
    """
    n, m = images.shape[0], texts.shape[0]
    with torch.autocast(images.device.type, enabled=False):
        distances = torch.cdist(
            full_precision(images).flatten(0, 1), full_precision(texts).flatten(0, 1)
        )
    return distances.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)
