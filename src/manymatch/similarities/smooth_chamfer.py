"""Smooth-Chamfer similarity: Chamfer with a soft maximum, which gives every pair a gradient."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.blocked_smooth_chamfer import blocked_smooth_chamfer, by_logsumexp
from manymatch.similarities.blocks import needs_gradient
from manymatch.similarities.pairs import pair_cosines


def smooth_chamfer(images: Tensor, texts: Tensor, alpha: float | Tensor = 16.0) -> Tensor:
    """`1/(2 alpha K) sum_x LSE_y(alpha cos) + 1/(2 alpha L) sum_y LSE_x(alpha cos)`.

    Args:
        images: `(n, K, D)`, L2-normalised. For vectors of other lengths, `cos` is the product.
        texts: `(m, L, D)`, L2-normalised.
        alpha: > 0, sharpness of the soft maximum; a number or a learned scalar.

    Returns:
        `(n, m)`, exact for negative cosines too. With K = L = 1 it is the cosine; otherwise it
        exceeds `chamfer` by at most `(log K + log L) / (2 alpha)`.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings
        (DivE), CVPR 2023, eq. 6.
    """
    learned = (alpha,) if isinstance(alpha, Tensor) else ()
    if needs_gradient(images, texts, *learned):
        return by_logsumexp(alpha, alpha * pair_cosines(images, texts))
    return blocked_smooth_chamfer(images, texts, float(alpha))
