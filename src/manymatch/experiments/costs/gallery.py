"""Galleries of any size, and the search of one query in a gallery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import Score, runs
from manymatch.methods.base import Embeddings

_BLOCK = 20_000
"""Images scored at once: enough that the overhead of a block is small."""
_MOST_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class Gallery:
    """`size` images: the images `held`, repeated. They fill whole blocks, or are all images."""

    held: Embeddings
    size: int

    def blocks(self) -> Iterator[Embeddings]:
        """Yield all images in blocks, without copying."""
        for run in runs(self.size, _BLOCK):
            first = run.start % len(self.held)
            yield self.held.rows(slice(first, first + run.stop - run.start))


def grown(images: Embeddings, size: int, most_bytes: int = _MOST_BYTES) -> Gallery:
    """A gallery of `size` images: the given images, repeated, with the parts that a score can use.

    The gallery holds about `most_bytes` at most, and at least one block. That is far more than any
    cache, so a search takes as long as with `size` different images.
    """
    needed = images.scored_parts()
    image_bytes = sum(part[0].nbytes for part in needed.values())
    blocks = max(1, most_bytes // (image_bytes * _BLOCK))
    repeated = torch.arange(min(size, blocks * _BLOCK), device=images.vectors.device) % len(images)
    return Gallery(type(images)(**{name: part[repeated] for name, part in needed.items()}), size)


def search(score: Score, gallery: Gallery, query: Embeddings, depth: int = 10) -> Tensor:
    """`(depth,)`: the images of `gallery` that a single text `query` ranks first."""
    scores = torch.cat([score(block, query)[:, 0] for block in gallery.blocks()])
    return scores.topk(min(depth, len(scores))).indices
