"""InfoNCE over the score matrix of a batch."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.pairs import positive_pairs, positive_scores


def info_nce(scores: Tensor, image_index: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of each positive pair against its negatives, both directions added.

    With `z = scores / temperature` and i the image of caption j, the mean over all captions j of
    `-log(exp z(i, j) / (exp z(i, j) + sum_k exp z(i, k)))`, k over captions of OTHER images, plus
    the mean over j of `-log(exp z(i, j) / sum_k exp z(k, j))`, k over all images. The other
    captions of an image are neither negatives nor terms of the denominator. The sum of the two
    directions is not halved. Without captions the loss is 0.

    Args:
        scores: `(n, m)`, images by captions.
        image_index: `(m,)` row of each caption's image.
        temperature: > 0.

    Relations:
        `entity_contrastive` takes any positives and averages over each anchor first.

    References:
        van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
        MaxMatch's `L_con`.
    """
    if not len(image_index):
        return scores.sum()  # 0, and part of the graph
    positive = positive_pairs(scores, image_index)
    logits = scores / temperature
    to_texts = contrastive_terms(logits, positive)
    to_images = contrastive_terms(logits.T, positive.T).T
    own_texts, own_images = (positive_scores(part, image_index) for part in (to_texts, to_images))
    return own_texts.mean() + own_images.mean()
