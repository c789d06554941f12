"""Smooth-Chamfer similarity: Chamfer with a soft maximum, so that every pair gets a gradient."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.pairs import pair_cosines


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
    scaled = alpha * pair_cosines(images, texts)
    to_texts = scaled.logsumexp(3).mean(2)
    to_images = scaled.logsumexp(2).mean(2)
    return (to_texts + to_images) / (2 * alpha)
