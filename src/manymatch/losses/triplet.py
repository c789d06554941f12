"""Triplet loss over the score matrix of a batch, with hardest or all negatives."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from manymatch.losses.pairs import own_pairs, own_scores

Mining = Literal["hardest", "all"]


def triplet(scores: Tensor, owner: Tensor, margin: float, mining: Mining = "hardest") -> Tensor:
    """A caption's score with its own image should beat every wrong pair's by `margin`.

    With `s+(j)` = score of caption j and its image i, the mean over all captions j of
    `reduce_k [margin + s(i, k) - s+(j)]+` over captions k of OTHER images, plus the mean over j
    of `reduce_k [margin + s(k, j) - s+(j)]+` over other images k. Captions of one image are
    never each other's negatives. A batch of a single image has no negative: the loss is 0, as it
    is without captions.

    Args:
        scores: `(n, m)`, images by captions.
        owner: `(m,)` row of each caption's image.
        margin: the paper's alpha or delta.
        mining: `reduce`: "hardest" is the maximum (VSE++'s MH, DivE eq. 9), "all" the sum (SH).

    Raises:
        ValueError: there is no such mining.

    References:
        Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives,
        BMVC 2018, eq. 5 and 6.
    """
    if mining not in get_args(Mining):
        raise ValueError(f"mining is '{mining}': expected 'hardest' or 'all'")
    if not len(owner):
        return scores.sum()  # 0, and part of the graph
    positive = own_scores(scores, owner)
    rivals = scores.masked_fill(own_pairs(scores, owner), -torch.inf)
    if mining == "hardest":
        texts, images = rivals.amax(1)[owner], rivals.amax(0)
        return _hinge(texts - positive, margin).mean() + _hinge(images - positive, margin).mean()
    texts, images = rivals[owner] - positive[:, None], rivals - positive
    return _hinge(texts, margin).sum(1).mean() + _hinge(images, margin).sum(0).mean()


def _hinge(difference: Tensor, margin: float) -> Tensor:
    return (margin + difference).relu()
