"""MaxMatch's intra-set divergence loss: the elements of a set differ from each other."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.element_pairs import element_cosines
from manymatch.losses.mean import sum_of_means


def intra_set_divergence(*vectors: Tensor, margin: float, scale: float) -> Tensor:
    """The mean over batch and pairs j < k of `exp(scale (cos(e_j, e_k) - margin))`; 0 if K = 1.

    Args:
        vectors: `(n, K, D)` elements; normalised here. The losses of several batches are added.
        margin: the paper's delta_3.
        scale: the paper's s, > 0.

    Relations:
        `slot_diversity` does the same for slots, before the global vector is added.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, L_ISD.
    """
    cosines = element_cosines(*vectors)
    return sum_of_means((scale * (cosines - margin)).exp(), vectors)
