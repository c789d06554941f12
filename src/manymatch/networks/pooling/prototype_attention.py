"""Prototype attention (PAR): the same learned queries read images and captions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.networks.pooling.masked import Mask, masked_softmax, real_rows, zeroed
from manymatch.similarities.vectors import unit


class PrototypeAttention(nn.Module):
    """p learned queries, each of which takes a softmax-weighted mean of the local features.

    `z_j = sum_r w_r x_r` with `w = softmax_r(q_j . x_r / T)`, where the local features x have
    length 1, as in SCAN, whose features the paper takes. One module reads both modalities, whose
    encoders give D dimensions. The paper prints no formula of the attention; in this project the
    features are keys and values. H heads with p queries each are one module with H p queries. The
    queries start from N(0, 1/D), so that a fresh module weighs all features almost equally.

    Args:
        size: D, of local features and queries.
        n_prototypes: number of queries, p or H p.
        temperature: T > 0 of the softmax.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, section 5.3 and appendix D; Lee et al., Stacked Cross Attention for Image-Text
        Matching, ECCV 2018, whose released code normalises regions and words.
    """

    def __init__(self, size: int, n_prototypes: int, temperature: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature
        self.queries = nn.Parameter(torch.randn(n_prototypes, size) * size**-0.5)

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, p, D)`; `globals` are ignored."""
        features, mask = unit(zeroed(local, mask)).to(local.dtype), real_rows(local, mask)
        scores = self.queries.to(features.dtype) @ features.mT / self.temperature
        weights = masked_softmax(scores, mask)
        return weights.to(features.dtype) @ features
