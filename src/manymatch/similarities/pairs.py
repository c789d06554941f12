"""Cosines between all elements of all sets: what every set similarity is made from."""

from __future__ import annotations

import torch
from torch import Tensor


def pair_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """Cosines `(n, m, K, L)` of the elements of `images (n, K, D)` and `texts (m, L, D)`.

    Both are L2-normalised. One matrix product, never in half precision: at a temperature of
    0.01 the rounding of a bfloat16 cosine would be as large as the differences that matter.
    """
    with torch.autocast(images.device.type, enabled=False):
        product = full_precision(images).flatten(0, 1) @ full_precision(texts).flatten(0, 1).T
    n, m = images.shape[0], texts.shape[0]
    return product.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)


def full_precision(vectors: Tensor) -> Tensor:
    """`vectors`, in float32 if they are of half precision."""
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors
