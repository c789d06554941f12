"""Cosines between all elements of all sets, from which set similarities are made."""

from __future__ import annotations

import torch
from torch import Tensor


def pair_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """Cosines `(n, m, K, L)` of the elements of `images (n, K, D)` and `texts (m, L, D)`.

    Both are L2-normalised. The cosines are one matrix product, never in half precision: at a
    temperature of 0.01 the rounding error of a bfloat16 cosine is as large as relevant differences.
    """
    product = _product(images.flatten(0, 1), texts.flatten(0, 1))
    n, m = images.shape[0], texts.shape[0]
    return product.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)


def plane_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """The cosines as `(K, L, n, m)`: for two elements a plane of all pairs of sets.

    The rows of a plane are contiguous, so that an operation on planes reads memory in order.
    """
    (n, n_image, _), (m, n_text, _) = images.shape, texts.shape
    product = _product(images.transpose(0, 1).flatten(0, 1), texts.transpose(0, 1).flatten(0, 1))
    return product.view(n_image, n, n_text, m).transpose(1, 2)


def _product(rows: Tensor, columns: Tensor) -> Tensor:
    with torch.autocast(rows.device.type, enabled=False):
        return full_precision(rows) @ full_precision(columns).T


def full_precision(vectors: Tensor) -> Tensor:
    """`vectors`, converted to float32 if they have half precision."""
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors
