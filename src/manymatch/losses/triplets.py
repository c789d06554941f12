"""Losses with a margin: the triplet loss of a batch, and CORA's specificity loss."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from manymatch.losses.contrastive import (
    either,
    mean,
    positive_pairs,
    positive_scores,
    without,
)

Mining = Literal["hardest", "all", "mean"]


def mining_of_epoch(epoch: int, all_negatives_epochs: int, first: Mining = "all") -> Mining:
    """`first` in the first `all_negatives_epochs`, then the hardest; `epoch` is 0-based."""
    return first if epoch < all_negatives_epochs else "hardest"


def triplet(
    scores: Tensor,
    image_index: Tensor,
    margin: float,
    mining: Mining = "hardest",
    left_out: Tensor | None = None,
) -> Tensor:
    """The score of a positive pair should exceed the score of every negative pair by `margin`.

    With `s+(j)` = score of caption j and its image i, the mean over all captions j of
    `reduce_k [margin + s(i, k) - s+(j)]+` over captions k of OTHER images, plus the mean over j
    of `reduce_k [margin + s(k, j) - s+(j)]+` over other images k. Captions of one image are
    never each other's negatives. The loss is 0 for a batch without negatives (a single image) or
    without captions.

    Args:
        scores: `(n, m)`, images by captions.
        image_index: `(m,)` row of each caption's image.
        margin: the papers' alpha or delta.
        mining: `reduce`: "hardest" is the maximum (VSE++'s MH, DivE eq. 9), "all" the sum (SH),
            "mean" the mean over the negatives of the caption in this direction (HowTo100M).
        left_out: `(n, m)` bool; pairs of other images that are no negatives either.

    Raises:
        ValueError: `mining` is none of these.

    Relations:
        `info_nce` weighs all negatives by a softmax instead of a margin.

    References:
        Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives,
        BMVC 2018, eq. 5 and 6. Miech et al., HowTo100M, ICCV 2019, released code.
    """
    if mining not in get_args(Mining):
        raise ValueError(f"mining is '{mining}': expected 'hardest', 'all' or 'mean'")
    if not len(image_index):
        return scores.sum()  # 0, and part of the graph
    positive = positive_scores(scores, image_index)
    negatives = without(scores.scatter(0, image_index[None], -torch.inf), left_out, -torch.inf)
    if mining == "hardest":
        texts, images = negatives.amax(1).index_select(0, image_index), negatives.amax(0)
        return _hinge(torch.stack([texts, images]) - positive, margin).mean(1).sum()
    texts, images = negatives[image_index] - positive[:, None], negatives - positive
    text_terms, image_terms = _hinge(texts, margin).sum(1), _hinge(images, margin).sum(0)
    if mining == "mean":
        wrong = ~either(positive_pairs(scores, image_index), left_out)
        text_terms = text_terms / wrong.sum(1).clamp_min(1)[image_index]
        image_terms = image_terms / wrong.sum(0).clamp_min(1)
    return text_terms.mean() + image_terms.mean()


def _hinge(difference: Tensor, margin: float) -> Tensor:
    return (margin + difference).relu()


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
    return mean((margin + entities - captions.gather(0, caption)).relu())
