"""PVSE's diversity loss: the residuals of PIE-Net's heads are orthogonal."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.losses.element_pairs import gram
from manymatch.losses.mean import sum_of_means


def gram_diversity(*slots: Tensor) -> Tensor:
    """The mean over the batch of `||G - diag(G)||_F / K^2`, G the cosines of a sample's residuals.

    Args:
        slots: `(n, K, D)` residuals, before they are added to the global vector. With K = 1 the
            loss is 0. The losses of several batches are added.

    Relations:
        `slot_diversity` is DivE's diversity loss.

    References:
        Song and Soleymani, Polysemous Visual-Semantic Embedding for Cross-Modal Retrieval
        (PVSE), CVPR 2019, L_div, as in its released code.
    """
    size = slots[0].shape[1]
    own = torch.eye(size, dtype=torch.bool, device=slots[0].device)
    others = gram(*slots).masked_fill(own, 0.0)
    return sum_of_means(torch.linalg.vector_norm(others, dim=(1, 2)), slots) / size**2
