"""Parts that losses share: the positive pairs of a batch, and means of terms."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def positive_pairs(scores: Tensor, image_index: Tensor) -> Tensor:
    """`(n, m)` bool: True where the caption (column) belongs to the image (row).

    Args:
        scores: `(n, m)`, images by captions, or anything else with n rows on their device.
        image_index: `(m,)` row of each caption's image.
    """
    rows = torch.arange(scores.shape[0], device=scores.device)
    return rows[:, None] == image_index


def positive_scores(scores: Tensor, image_index: Tensor) -> Tensor:
    """`(m,)` score of each caption with its own image; arguments as for `positive_pairs`."""
    # Unlike indexing by two tensors, `gather` has a gradient that a GPU need not sort.
    return scores.gather(0, image_index[None]).squeeze(0)


def mean(terms: Tensor) -> Tensor:
    """The mean of all `terms`; 0, as a part of the graph, if there are no terms."""
    return terms.mean() if terms.numel() else terms.sum()


def sum_of_means(terms: Tensor, sides: Sequence[Tensor]) -> Tensor:
    """The sum over `sides`, such as images and captions, of the mean of the terms of a side.

    `terms` has a row for each row of all sides: one operation on both takes a GPU less time than
    two.
    """
    first, *others = (mean(part) for part in terms.split([len(side) for side in sides]))
    return sum(others, first)
