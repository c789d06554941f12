"""PCME's uniformity loss: embeddings spread over the space."""

from __future__ import annotations

import math

from torch import Tensor, pdist


def uniformity(vectors: Tensor) -> Tensor:
    """`log mean exp(-2 ||x_i - x_j||^2)` over the pairs i < j of `vectors (n, D)`; 0 if n < 2.

    Relations:
        `slot_diversity` has the same kernel and compares the slots of one set.

    References:
        Wang and Isola, Understanding Contrastive Representation Learning through Alignment and
        Uniformity on the Hypersphere, ICML 2020, eq. 5; PCME's released code, for CUB.
    """
    if len(vectors) < 2:
        return vectors.sum() * 0.0
    exponents = -2 * pdist(vectors).square()
    return exponents.logsumexp(0) - math.log(len(exponents))
