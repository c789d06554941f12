"""The cosine of two embeddings."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.pairs import pair_cosines


def cosine(images: Tensor, texts: Tensor) -> Tensor:
    """Cosine of two vectors; of two sets, the mean cosine over all pairs of their elements.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1]. With K = L = 1 the usual score of VSE++, VSE-infinity and CORA.
    """
    return pair_cosines(images.mean(1, keepdim=True), texts.mean(1, keepdim=True))[:, :, 0, 0]
