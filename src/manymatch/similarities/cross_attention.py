"""SCAN's cross-attention, which encodes every pair of image and caption together.

It serves the comparison of speed only. The cost of a pair grows with regions times words, and no
part of it can be computed before the query is known.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.similarities.pairs import full_precision

_EPSILON = 1e-8


def cross_attention(
    context: Tensor,
    context_mask: Tensor,
    elements: Tensor,
    element_mask: Tensor,
    temperature: float,
) -> Tensor:
    """The mean over elements l of `cos(x_l, a_l)`, where `a_l` is the context that l attends to.

    Cosines of a part r of the context with the elements of a set are clipped at zero and
    L2-normalised over the elements; `a_l = sum_r softmax_r(temperature * normalised) c_r`.

    SCAN's text-to-image form has an image's regions as context and a caption's words as elements;
    its image-to-text form has the words as context and the regions as elements.

    Args:
        context: `(n, R, D)`, L2-normalised.
        context_mask: `(n, R)`, True where real.
        elements: `(m, L, D)`, L2-normalised.
        element_mask: `(m, L)`, True where real.
        temperature: SCAN's lambda_1, an inverse temperature.

    Returns:
        `(n, m)` in [-1, 1]. Memory grows with `n m L (R + D)`: use small blocks.

    References:
        Lee et al., Stacked Cross Attention for Image-Text Matching (SCAN), ECCV 2018, section 3.1,
        with average pooling.
    """
    context, elements = full_precision(context), full_precision(elements)
    weights = _attention(context, context_mask, elements, element_mask, temperature)
    attended = torch.einsum("nmlr,nrd->nmld", weights, context)
    lengths = attended.norm(dim=3) * elements.norm(dim=2)
    cosines = (attended * elements).sum(3) / lengths.clamp(min=_EPSILON)
    return (cosines * element_mask).sum(2) / element_mask.sum(1)


def _attention(
    context: Tensor,
    context_mask: Tensor,
    elements: Tensor,
    element_mask: Tensor,
    temperature: float,
) -> Tensor:
    """`(n, m, L, R)` attention weights of each element of each set over each context."""
    cosines = torch.einsum("nrd,mld->nmlr", context, elements).relu()
    cosines = cosines.masked_fill(~element_mask[None, :, :, None], 0.0)
    normalised = cosines / (cosines.norm(dim=2, keepdim=True) + _EPSILON)
    logits = (temperature * normalised).masked_fill(~context_mask[:, None, None], -torch.inf)
    return logits.softmax(3)
