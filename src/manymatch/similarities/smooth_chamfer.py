"""Smooth-Chamfer similarity: Chamfer with a soft maximum, so that every pair gets a gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.blocked_smooth_chamfer import blocked_smooth_chamfer, factors_per_log
from manymatch.similarities.pairs import full_precision, pair_cosines


def smooth_chamfer(images: Tensor, texts: Tensor, alpha: float = 16.0) -> Tensor:
    """`1/(2 alpha K) sum_x LSE_y(alpha cos) + 1/(2 alpha L) sum_y LSE_x(alpha cos)`.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.
        alpha: sharpness of the soft maximum, > 0.

    Returns:
        `(n, m)`; exact for negative cosines too. With K = L = 1 it is the cosine; otherwise it
        exceeds `chamfer` by at most `(log K + log L) / (2 alpha)`.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings
        (DivE), CVPR 2023, eq. 4.
    """
    if _needs_gradient(images, texts) or not _in_range(images, texts, alpha):
        return _with_gradient(images, texts, alpha)
    with torch.no_grad():
        return blocked_smooth_chamfer(full_precision(images), full_precision(texts), alpha)


def _with_gradient(images: Tensor, texts: Tensor, alpha: float) -> Tensor:
    scaled = alpha * pair_cosines(images, texts)
    to_texts = scaled.logsumexp(3).mean(2)
    to_images = scaled.logsumexp(2).mean(2)
    return (to_texts + to_images) / (2 * alpha)


def _needs_gradient(images: Tensor, texts: Tensor) -> bool:
    return torch.is_grad_enabled() and (images.requires_grad or texts.requires_grad)


def _in_range(images: Tensor, texts: Tensor, alpha: float) -> bool:
    longest = max(images.shape[1], texts.shape[1])
    return factors_per_log(alpha, longest, full_precision(images).dtype) >= 1
