"""CORA's specificity loss: a caption scores higher with its image than each of its entities."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.mean import mean


def specificity(captions: Tensor, entities: Tensor, caption: Tensor, margin: float) -> Tensor:
    """The mean over entities e_k of `[margin + s(v, e_k) - s(v, t)]+`, t the entity's caption, v
    its image.

    Args:
        captions: `(m,)` scores s(v, t) of captions with their own image.
        entities: `(V,)` scores s(v, e_k) of entities with the image of their caption.
        caption: `(V,)` row of each entity's caption.
        margin: the paper's alpha.

    References:
        Pham et al., Composing Object Relations and Attributes for Image-Text Matching (CORA),
        CVPR 2024, L_SPEC.
    """
    return mean((margin + entities - captions[caption]).relu())
