"""Prototype attention (PAR): the same learned queries read images and captions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.pooling.masked import Mask, masked_softmax, real_rows, zeroed


class PrototypeAttention(nn.Module):
    """p learned queries, each of which takes a softmax-weighted mean of the local features.

    `z_j = sum_r w_r x_r` with `w = softmax_r(q_j . x_r / (T sqrt(D)))`. One module reads both
    modalities, whose encoders give D dimensions. The paper prints no formula of the attention; this
    project takes the scaled dot product, with the features as keys and values. H heads with p
    queries each are one module with H p queries.

    Args:
        size: D, of local features and queries.
        n_prototypes: number of queries, p or H p.
        temperature: T > 0 of the softmax.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, section 5.3 and appendix D.
    """

    def __init__(self, size: int, n_prototypes: int, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature
        self.queries = nn.Parameter(torch.randn(n_prototypes, size))

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, p, D)`; `globals` are ignored."""
        features, mask = zeroed(local, mask), real_rows(local, mask)
        scale = self.temperature * features.shape[-1] ** 0.5
        scores = self.queries.to(features.dtype) @ features.mT / scale
        weights = masked_softmax(scores, mask)
        return weights.to(features.dtype) @ features
