"""MaxMatch's global discriminative loss: elements differ from the global vector."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from manymatch.losses.mean import mean
from manymatch.similarities.pairs import full_precision


def global_discriminative(vectors: Tensor, globals: Tensor, margin: float, scale: float) -> Tensor:
    """The mean over batch and K of `exp(scale (cos(element, global) - margin))`.

    Args:
        vectors: `(n, K, D)` elements; normalised here.
        globals: `(n, D)` the samples' global vectors; normalised here.
        margin: the paper's delta_2.
        scale: the paper's s, > 0.

    Relations:
        `intra_set_divergence` compares the elements of a set with each other.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, L_GD.
    """
    elements = functional.normalize(full_precision(vectors), dim=2)
    whole = functional.normalize(full_precision(globals), dim=1)
    cosines = (elements * whole[:, None]).sum(2)
    return mean((scale * (cosines - margin)).exp())
