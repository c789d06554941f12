"""Scores of some queries against the whole gallery, for what has to sort or count all of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import CAPTIONS_PER_BLOCK, Score, checked, runs
from manymatch.methods.base import Embeddings

SCORES_AT_ONCE = 4_000_000
"""Scores held at once (16 MB, and some times that for sorting them)."""


def whole_rows(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    asked: Tensor | None = None,
    scores_at_once: int = SCORES_AT_ONCE,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Runs of queries with their scores: rows `(q,)` of those that are asked (CPU) and
    `(q, gallery)`.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        asked: `(queries,)` which queries count (None: all).

    Raises:
        DataError: a score is not finite.
    """
    asked = torch.ones(len(queries), dtype=torch.bool) if asked is None else asked.cpu()
    for run in runs(len(queries), max(1, scores_at_once // max(1, len(gallery)))):
        chosen = asked[run].nonzero()[:, 0]
        if len(chosen):
            scores = _scores(score, queries.rows(run), gallery)
            yield run.start + chosen, scores[chosen.to(scores.device)]


def _scores(score: Score, queries: Embeddings, gallery: Embeddings) -> Tensor:
    with torch.inference_mode():
        parts = [
            score(queries, gallery.rows(run)) for run in runs(len(gallery), CAPTIONS_PER_BLOCK)
        ]
        return checked(torch.cat(parts, 1))


def turned(score: Score) -> Score:
    """`score (images, texts)` with captions as queries: `(texts, images) -> (m, n)`."""

    def from_texts(texts: Embeddings, images: Embeddings) -> Tensor:
        return score(images, texts).T

    return from_texts
