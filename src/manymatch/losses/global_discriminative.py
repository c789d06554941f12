"""MaxMatch's global discriminative loss: elements differ from the global vector."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.losses.mean import sum_of_means
from manymatch.similarities.pairs import full_precision
from manymatch.similarities.unit import unit


def global_discriminative(*sides: tuple[Tensor, Tensor], margin: float, scale: float) -> Tensor:
    """The mean over batch and K of `exp(scale (cos(element, global) - margin))`.

    Args:
        sides: elements `(n, K, D)` and the samples' global vectors `(n, D)`; normalised here. The
            losses of several batches are added.
        margin: the paper's delta_2.
        scale: the paper's s, > 0.

    Relations:
        `intra_set_divergence` compares the elements of a set with each other.

    References:
        Alomari et al., Maximal Matching Matters: Preventing Representation Collapse for Robust
        Cross-Modal Retrieval (MaxMatch), ACL 2025, L_GD.
    """
    elements, whole = (
        unit(torch.cat([full_precision(side[part]) for side in sides])) for part in (0, 1)
    )
    cosines = (elements * whole[:, None]).sum(2)
    return sum_of_means((scale * (cosines - margin)).exp(), [vectors for vectors, _ in sides])
