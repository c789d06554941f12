"""Which element of an image's set matches which element of its captions (MaxMatch, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.blocks import runs
from manymatch.results import sets as results

_PAIRS_AT_ONCE = 2048


@dataclass(frozen=True)
class ElementPairs:
    """Statistics of all annotated pairs, float64 on the CPU: `share (K, L)` of pairs in which image
    element k and text element l match best (sums to 1), and their mean `cosine (K, L)`."""

    share: Tensor
    cosine: Tensor

    def rounded(self) -> results.ElementPairs:
        """The same as result files hold it."""
        share, cosine = (
            [[round(value, 4) for value in row] for row in table.tolist()]
            for table in (self.share, self.cosine)
        )
        return results.ElementPairs(share=share, cosine=cosine)


def element_pairs(images: Tensor, texts: Tensor, image_index: Tensor) -> ElementPairs:
    """Compare the elements of each caption with those of its image.

    Args:
        images, texts: vectors `(n, K, D)` and `(m, L, D)`, m >= 1.
        image_index: `(m,)` row of each caption's image.
    """
    wins = torch.zeros(images.shape[1] * texts.shape[1], dtype=torch.int64)
    total = torch.zeros(images.shape[1], texts.shape[1], dtype=torch.float64)
    for run in runs(len(texts), _PAIRS_AT_ONCE):
        positives = images[image_index[run].to(images.device)]
        cosine = normalize(positives, dim=2) @ normalize(texts[run], dim=2).mT
        best = cosine.flatten(1).argmax(1).cpu()
        wins += torch.bincount(best, minlength=len(wins))
        total += cosine.sum(0, dtype=torch.float64).cpu()
    return ElementPairs(wins.double().view_as(total) / len(texts), total / len(texts))


def winners(share: Tensor) -> float:
    """The effective number of elements that win, by their shares `(K,)` of the best pairs: the
    exponential of the entropy, from 1 (always the same element) to K (all equally often).

    A similarity of best pairs alone (MIL) never uses an element that does not win. Such an element
    may still matter to a similarity of all elements.
    """
    return torch.special.entr(share.double()).sum().exp().item()
