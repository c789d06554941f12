"""Searching galleries of any size with one query."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from manymatch.evaluation.blocks import Score, rows, runs
from manymatch.methods.base import Embeddings

_BLOCK = 20_000
"""Images scored at once; many enough that a block costs little beside what is in it."""


def grown(images: Embeddings, size: int) -> Embeddings:
    """`size` images: these over and over, only with the parts that a score can need."""
    chosen = torch.arange(size, device=images.vectors.device) % len(images)
    parts = images.parts()
    kept = {name: parts[name][chosen] for name in ("vectors", "log_variance") if name in parts}
    return Embeddings(**kept)


def search(score: Score, gallery: Embeddings, query: Embeddings, depth: int = 10) -> Tensor:
    """`(depth,)`: the rows of `gallery` that the one text `query` ranks first."""
    return best(
        (score(rows(gallery, block), query)[:, 0] for block in runs(len(gallery), _BLOCK)), depth
    )


def best(scores: Iterator[Tensor], depth: int) -> Tensor:
    """The places of the highest among all `scores`, which come in pieces."""
    whole = torch.cat(list(scores))
    return whole.topk(min(depth, len(whole))).indices
