"""The best items of every query, kept while scores arrive block by block."""

from __future__ import annotations

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import holding


class Top:
    """The `depth` highest scores `(n, depth)` of n queries and their items, highest first.

    An empty position holds score -inf and item -1. Scores are kept in float32, or in the widest
    type among the blocks.
    """

    def __init__(self, n: int, depth: int, device: torch.device) -> None:
        self.scores = torch.full((n, depth), -torch.inf, device=device)
        self.items = torch.full((n, depth), -1, dtype=torch.int64, device=device)

    def update(self, queries: slice, first: int, scores: Tensor) -> None:
        """Add `scores (q, g)` of the queries against the items `first .. first + g`."""
        self.scores = holding(self.scores, scores)
        scores_so_far, items = self.scores[queries], self.items[queries]
        if scores_so_far.shape[1] == 0:
            return
        if bool(torch.isneginf(scores_so_far[:, -1]).any()):
            new, columns = scores.topk(min(scores_so_far.shape[1], scores.shape[1]), dim=1)
            new_items = columns + first
        else:  # few scores enter now, and to find these first is cheaper than to sort all
            new, columns = _above(scores, scores_so_far[:, -1])
            new_items = columns + first
        merged, order = torch.cat([scores_so_far, new], 1).topk(scores_so_far.shape[1], dim=1)
        self.scores[queries] = merged
        self.items[queries] = torch.cat([items, new_items], 1).gather(1, order)


def _above(scores: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """The `scores (q, g)` above each row's `floor (q,)`, moved to the left and padded with -inf,
    and the columns of these scores."""
    row, column = (scores > floor[:, None]).nonzero(as_tuple=True)
    counts = torch.bincount(row, minlength=len(scores))
    target = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    values = scores.new_full((len(scores), int(counts.max())), -torch.inf)
    columns = torch.zeros_like(values, dtype=torch.int64)
    values[row, target] = scores[row, column]
    columns[row, target] = column
    return values, columns
