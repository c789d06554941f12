"""The positive pairs of a batch: each caption with its own image."""

from __future__ import annotations

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
