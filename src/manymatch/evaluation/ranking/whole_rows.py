"""Scores of queries against the whole gallery, for metrics that sort or count all items."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import CAPTIONS_PER_BLOCK, Score, checked, runs
from manymatch.methods.base import Embeddings
from manymatch.system.progress import track

SCORES_AT_ONCE = 4_000_000
"""Scores in memory at once: 16 MB, and several times as much while they are sorted."""


def whole_rows(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    included: Tensor | None = None,
    scores_at_once: int = SCORES_AT_ONCE,
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
    parts = list(runs(len(queries), max(1, scores_at_once // max(1, len(gallery)))))
    what = f"compare {len(queries)} queries with {len(gallery)} items (blocks)"
    for run in track(parts, what, len(parts), quiet=True):
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


def transposed(score: Score) -> Score:
    """`score (images, texts)` with captions as queries: `(texts, images) -> (m, n)`."""

    def from_texts(texts: Embeddings, images: Embeddings) -> Tensor:
        return score(images, texts).T

    return from_texts
