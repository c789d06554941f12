"""Which pairs of a batch belong together."""

from __future__ import annotations

import torch
from torch import Tensor


def own_pairs(scores: Tensor, owner: Tensor) -> Tensor:
    """`(n, m)` bool: True where the caption (column) is the image's (row) own."""
    rows = torch.arange(scores.shape[0], device=scores.device)
    return rows[:, None] == owner


def own_scores(scores: Tensor, owner: Tensor) -> Tensor:
    """`(m,)` the score of each caption with its own image."""
    return scores[owner, torch.arange(len(owner), device=scores.device)]
