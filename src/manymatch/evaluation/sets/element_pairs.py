"""Which element of an image's set meets which of its captions' (MaxMatch, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.blocks import runs

_PAIRS_AT_ONCE = 2048


@dataclass(frozen=True)
class ElementPairs:
    """Of all own pairs: `share (K, L)` in which image element k and text element l are the best
    matching pair (sums to 1), and `cosine (K, L)`, their mean cosine. Float64, on the CPU."""

    share: Tensor
    cosine: Tensor


def element_pairs(images: Tensor, texts: Tensor, owner: Tensor) -> ElementPairs:
    """Compare the elements of each caption with those of its image.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`, m >= 1.
        owner: `(m,)` row of each caption's image.
    """
    wins = torch.zeros(images.shape[1] * texts.shape[1], dtype=torch.int64)
    total = torch.zeros(images.shape[1], texts.shape[1], dtype=torch.float64)
    for run in runs(len(texts), _PAIRS_AT_ONCE):
        own = images[owner[run].to(images.device)]
        cosine = normalize(own, dim=2) @ normalize(texts[run], dim=2).mT
        best = cosine.flatten(1).argmax(1).cpu()
        wins += torch.bincount(best, minlength=len(wins))
        total += cosine.sum(0, dtype=torch.float64).cpu()
    return ElementPairs(wins.double().view_as(total) / len(texts), total / len(texts))


def winners(share: Tensor) -> float:
    """How many elements win, by their shares `(K,)` of the best pairs: the exponential of the
    entropy. 1: always the same one; K: all equally often.

    A similarity of best pairs alone (MIL) leaves the others without any use; to one that looks at
    all elements those that do not win may matter as much.
    """
    return torch.special.entr(share.double()).sum().exp().item()
