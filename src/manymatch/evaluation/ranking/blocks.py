"""Galleries in pieces: which rows of images and captions are scored at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manymatch.methods.base import Embeddings
from manymatch.system.errors import DataError

Score = Callable[[Embeddings, Embeddings], Tensor]
"""`(images, texts) -> (n_images, n_texts)`: `Method.score`, or anything like it."""

IMAGES_PER_BLOCK, CAPTIONS_PER_BLOCK = 1024, 5120
"""Scores of one block: 20 MiB, large enough that ranking them costs little beside making them."""


def runs(count: int, size: int) -> Iterator[slice]:
    """`range(count)` in runs of at most `size`."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def owner_blocks(owner: Tensor, n_images: int, images: int, captions: int) -> list[Block]:
    """Images in runs of at most `images`, each with its captions: at most `captions`, unless one
    image alone has more. `owner (m,)` is the row of each caption's image, ascending.

    Raises:
        DataError: an image without caption, or captions that are not in the images' order.
    """
    ends = _caption_ends(owner, n_images)
    blocks, start, first = [], 0, 0
    for row in range(1, n_images + 1):
        full = row == n_images or row - start == images or ends[row] - first > captions
        if full:
            blocks.append((slice(start, row), slice(first, ends[row - 1])))
            start, first = row, ends[row - 1]
    return blocks


Block = tuple[slice, slice]
"""A run of images and the run of captions that belong to them."""


def _caption_ends(owner: Tensor, n_images: int) -> list[int]:
    counts = torch.bincount(owner, minlength=n_images)
    if len(counts) > n_images or bool((owner.diff() < 0).any()):
        raise DataError("captions are not in the order of their images; write the shards again")
    if not bool(counts.all()):
        row = int((counts == 0).nonzero()[0])
        raise DataError(f"image {row} of the split has no caption; write the shards again")
    return counts.cumsum(0).tolist()


def holding(kept: Tensor, scores: Tensor) -> Tensor:
    """`kept`, in a type that holds its values and those of `scores` exactly.

    Rounding would break ties, and make others.
    """
    return kept.to(torch.promote_types(kept.dtype, scores.dtype))


def checked(scores: Tensor) -> Tensor:
    """`scores`, if all are finite; else a `DataError`: a rank among NaN means nothing."""
    low, high = torch.aminmax(scores)
    if not bool(torch.isfinite(low) & torch.isfinite(high)):
        raise DataError(
            "the model gives scores that are not finite numbers; its training diverged or the "
            "features hold NaN: train it again with a lower learning rate"
        )
    return scores
