"""Prototype attention (PAR): images and captions are read by the same learned queries."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.pooling.masked import masked_softmax, real_rows


class PrototypeAttention(nn.Module):
    """p learned queries, each the softmax-weighted mean of the local features it asks for.

    Query j and local features x are cut into H heads; in each, `z_jh = sum_r w_r x_rh` with
    `w = softmax_r(q_jh . x_rh / (T sqrt(d)))`, d = D / H; heads are put side by side again. One
    module reads both modalities, whose encoders end in the same D dimensions. Decisions of ours
    where the paper says only "attention": the scaled dot product, and features that are their
    own keys and values (of learned queries and encoders that end in a linear layer, more
    projections would give no other function of an image with one head).

    Args:
        size: D, of local features and queries; a multiple of `heads`.
        n_prototypes: p.
        heads: H.
        temperature: T > 0 of the softmax.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, image-text retrieval (PAR).
    """

    def __init__(
        self, size: int, n_prototypes: int, heads: int = 1, temperature: float = 0.5
    ) -> None:
        super().__init__()
        if size % heads:
            raise ValueError(f"size {size} is not a multiple of {heads} heads")
        self.heads, self.temperature = heads, temperature
        self.queries = nn.Parameter(torch.randn(n_prototypes, size))

    def forward(
        self, local: Tensor, mask: Tensor | None = None, globals: Tensor | None = None
    ) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, p, D)`; `globals` are not looked at."""
        mask = real_rows(local, mask)
        features = self._split(local.masked_fill(~mask[:, :, None], 0.0))
        scale = self.temperature * features.shape[-1] ** 0.5
        scores = self._split(self.queries.to(local.dtype)[None]) @ features.mT / scale
        weights = masked_softmax(scores, mask[:, None])
        return (weights.to(features.dtype) @ features).transpose(1, 2).flatten(2)

    def _split(self, vectors: Tensor) -> Tensor:
        """`(n, R, D)` -> `(n, H, R, D / H)`."""
        return vectors.unflatten(2, (self.heads, -1)).transpose(1, 2)
