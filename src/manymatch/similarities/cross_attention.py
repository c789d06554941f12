"""SCAN's cross-attention: every pair of image and caption is encoded together.

Here for the comparison of speed only: its cost for a pair grows with regions times words, and
nothing of it can be computed before the query is known.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from manymatch.similarities.pairs import full_precision

_EPSILON = 1e-8


def cross_attention(
    regions: Tensor,
    region_mask: Tensor,
    words: Tensor,
    word_mask: Tensor,
    temperature: float = 9.0,
) -> Tensor:
    """Mean over words l of `cos(w_l, a_l)`, `a_l` the regions as the word l attends to them.

    Cosines of a region with the words of a caption are clipped at zero and L2-normalised over
    the words; `a_l = sum_r softmax_r(temperature * normalised) v_r`.

    Args:
        regions: `(n, R, D)`, L2-normalised.
        region_mask: `(n, R)`.
        words: `(m, L, D)`, L2-normalised.
        word_mask: `(m, L)`.
        temperature: SCAN's lambda_1, inverse.

    Returns:
        `(n, m)` in [-1, 1]. Memory grows with `n m L (R + D)`: score it in small blocks.

    References:
        Lee et al., Stacked Cross Attention for Image-Text Matching (SCAN), ECCV 2018,
        text-to-image with average pooling.
    """
    regions, words = full_precision(regions), full_precision(words)
    weights = _attention(regions, region_mask, words, word_mask, temperature)
    attended = torch.einsum("nmlr,nrd->nmld", weights, regions)
    cosines = functional.cosine_similarity(attended, words[None], dim=3)
    return (cosines * word_mask).sum(2) / word_mask.sum(1)


def _attention(
    regions: Tensor, region_mask: Tensor, words: Tensor, word_mask: Tensor, temperature: float
) -> Tensor:
    """`(n, m, L, R)`: how each word of each caption divides itself over each image's regions."""
    cosines = torch.einsum("nrd,mld->nmlr", regions, words).relu()
    cosines = cosines.masked_fill(~word_mask[None, :, :, None], 0.0)
    normalised = cosines / (cosines.norm(dim=2, keepdim=True) + _EPSILON)
    logits = (temperature * normalised).masked_fill(~region_mask[:, None, None], -torch.inf)
    return logits.softmax(3)
