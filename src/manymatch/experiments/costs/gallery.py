"""Galleries of any size, and searching them with one query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import Score, runs
from manymatch.methods.base import Embeddings

_BLOCK = 20_000
"""Images scored at once; many enough that a block costs little beside what is in it."""
_MOST_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class Gallery:
    """`size` images: those that are `held` over and over, which fill whole blocks or are all."""

    held: Embeddings
    size: int

    def blocks(self) -> Iterator[Embeddings]:
        """All images, a block at a time, without copying."""
        for run in runs(self.size, _BLOCK):
            first = run.start % len(self.held)
            yield self.held.rows(slice(first, first + run.stop - run.start))


def grown(images: Embeddings, size: int, most_bytes: int = _MOST_BYTES) -> Gallery:
    """A gallery of `size` images: these over and over, only with the parts that a score can need.

    At most about `most_bytes` are held, and at least a block: far more than any cache, so that
    searching takes as long as if all were there.
    """
    needed = images.scored_parts()
    each = sum(part[0].nbytes for part in needed.values())
    blocks = max(1, most_bytes // (each * _BLOCK))
    chosen = torch.arange(min(size, blocks * _BLOCK), device=images.vectors.device) % len(images)
    return Gallery(type(images)(**{name: part[chosen] for name, part in needed.items()}), size)


def search(score: Score, gallery: Gallery, query: Embeddings, depth: int = 10) -> Tensor:
    """`(depth,)`: the images of `gallery` that the one text `query` ranks first."""
    scores = torch.cat([score(block, query)[:, 0] for block in gallery.blocks()])
    return scores.topk(min(depth, len(scores))).indices
