"""The cosine of two embeddings."""

from __future__ import annotations

from torch import Tensor

from manymatch.similarities.pairs import full_precision, pair_cosines


def cosine(images: Tensor, texts: Tensor) -> Tensor:
    """The cosine of two vectors; for two sets, the mean cosine over all pairs of elements.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1]. With K = L = 1 this is the score of VSE++, VSE-infinity and CORA.
    """
    return pair_cosines(_mean(images), _mean(texts)).squeeze((2, 3))


def _mean(sets: Tensor) -> Tensor:
    """The mean `(n, 1, D)` of each set `(n, K, D)`; a single vector is not copied."""
    return sets if sets.shape[1] == 1 else full_precision(sets).mean(1, keepdim=True)
