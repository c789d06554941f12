"""Blocks of a gallery: which rows of images and captions are scored at once; and whole rows, for
metrics that sort or count all items."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from manymatch.methods.shared.method import Embeddings
from manymatch.similarities.blocks import runs
from manymatch.util.errors import DataError, DivergenceError

Score = Callable[[Embeddings, Embeddings], Tensor]
"""`(images, texts) -> (n_images, n_texts)`: `Method.score`, or a function with its arguments."""

IMAGES_PER_BLOCK, CAPTIONS_PER_BLOCK = 1024, 5120
"""The scores of one block take 20 MiB: large enough that their ranking costs little beside their
computation."""


def blocks_by_image(image_index: Tensor, n_images: int) -> "list[Block]":
    """Runs of at most `IMAGES_PER_BLOCK` images with their captions.

    A run has at most `CAPTIONS_PER_BLOCK` captions, unless a single image has more. `image_index
    (m,)` is the row of each caption's image, ascending.

    Raises:
        DataError: an image has no caption, or the captions are not in the order of the images.
    """
    ends = _caption_ends(image_index, n_images)
    blocks, start, first = [], 0, 0
    for row in range(1, n_images + 1):
        if (
            row == n_images
            or row - start == IMAGES_PER_BLOCK
            or ends[row] - first > CAPTIONS_PER_BLOCK
        ):
            blocks.append((slice(start, row), slice(first, ends[row - 1])))
            start, first = row, ends[row - 1]
    return blocks


Block = tuple[slice, slice]
"""A run of images and the run of their captions."""


def _caption_ends(image_index: Tensor, n_images: int) -> list[int]:
    counts = torch.bincount(image_index, minlength=n_images)
    if len(counts) > n_images or bool((image_index.diff() < 0).any()):
        raise DataError("captions are not in the order of their images. Write the shards again.")
    if not bool(counts.all()):
        row = int((counts == 0).nonzero()[0])
        raise DataError(f"image {row} of the split has no caption. Write the shards again.")
    return counts.cumsum(0).tolist()


def holding(best: Tensor, scores: Tensor) -> Tensor:
    """`best` in a type that holds its values and those of `scores` exactly.

    Rounding would break ties and create new ties.
    """
    return best.to(torch.promote_types(best.dtype, scores.dtype))


def checked(scores: Tensor) -> Tensor:
    """Return `scores`; a score that is not finite is a `DataError`, because it has no rank."""
    low, high = torch.aminmax(scores)
    if not bool(torch.isfinite(low) & torch.isfinite(high)):
        raise DivergenceError(
            "the model's scores are not finite: training diverged, or the features hold NaN. "
            "Train the model again with a lower learning rate, or check the features."
        )
    return scores


SCORES_AT_ONCE = 4_000_000
"""Scores in memory at once: 16 MB, and several times as much while they are sorted."""


def whole_rows(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    included: Tensor | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield runs of queries: their rows `(q,)` on the CPU, and their scores `(q, gallery)`.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        included: `(queries,)` mask of the queries that count (None: all).

    Raises:
        DataError: a score is not finite.
    """
    if included is None:
        included = torch.ones(len(queries), dtype=torch.bool)
    included = included.cpu()
    for run in runs(len(queries), SCORES_AT_ONCE // max(1, len(gallery))):
        offsets = included[run].nonzero()[:, 0]
        if len(offsets):
            scores = _scores(score, queries.rows(run), gallery)
            yield run.start + offsets, scores[offsets.to(scores.device)]


def _scores(score: Score, queries: Embeddings, gallery: Embeddings) -> Tensor:
    with torch.inference_mode():
        parts = [
            score(queries, gallery.rows(run)) for run in runs(len(gallery), CAPTIONS_PER_BLOCK)
        ]
        return checked(torch.cat(parts, 1))
