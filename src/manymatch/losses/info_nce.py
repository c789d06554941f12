"""InfoNCE over the score matrix of a batch."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.pairs import own_pairs


def info_nce(scores: Tensor, owner: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of each own pair against its wrong pairs, both directions added (not halved).

    With `z = scores / temperature` and i the image of caption j, the mean over all captions j of
    `-log(exp z(i, j) / (exp z(i, j) + sum_k exp z(i, k)))`, k over captions of OTHER images, plus
    the mean over j of `-log(exp z(i, j) / sum_k exp z(k, j))`, k over all images. So the other
    captions of an image count neither as negatives nor in the denominator. Without captions the
    loss is 0.

    Args:
        scores: `(n, m)`, images by captions.
        owner: `(m,)` row of each caption's image.
        temperature: > 0.

    References:
        van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
        MaxMatch's `L_con`.
    """
    if not len(owner):
        return scores.sum()  # 0, and part of the graph
    own = own_pairs(scores, owner)
    logits = scores / temperature
    to_texts = contrastive_terms(logits, own)[own].mean()
    to_images = contrastive_terms(logits.T, own.T)[own.T].mean()
    return to_texts + to_images
