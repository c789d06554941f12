"""Recall of the annotated pairs, and multi-match metrics against all positives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.blocks import SCORES_AT_ONCE, Score, whole_rows
from manymatch.evaluation.ranking.metrics import (
    RelevantRanks,
    multi_match_metrics,
    recall_metrics,
    rsum,
)
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.methods.base import Embeddings


def recall(
    score: Score,
    images: Embeddings,
    texts: Embeddings,
    image_index: Tensor,
    *,
    t2i_score: Score | None = None,
) -> dict[str, Any]:
    """`i2t` and `t2i` (`recall_metrics` each) and `rsum`; the arguments are those of `rank`."""
    return recall_of(rank(score, images, texts, image_index, t2i_score=t2i_score))


def recall_of(ranking: Ranking) -> dict[str, Any]:
    """The metrics of `recall` from a ranking."""
    i2t, t2i = recall_metrics(ranking.i2t.ranks), recall_metrics(ranking.t2i.ranks)
    return {"i2t": i2t, "t2i": t2i, "rsum": rsum(i2t, t2i)}


def multi_match(subject: Subject, judgments: Judgments) -> dict[str, dict[str, float]]:
    """`i2t` and `t2i` (`multi_match_metrics` each) against annotated and judged pairs.

    If the judgments are complete all queries count, otherwise the queries with a judged pair beyond
    their annotated pairs. Ties are pessimistic: an irrelevant item of equal score ranks before a
    positive.

    Raises:
        DataError: a score is not finite.
    """
    images, texts, image_index = subject.embedded.gallery
    pairs = judgments.pairs(image_index.cpu())
    i2t = relevant_ranks(subject.score, images, texts, pairs, _queries(judgments, 0))
    t2i = relevant_ranks(subject.from_texts, texts, images, pairs.flip(1), _queries(judgments, 1))
    return {"i2t": multi_match_metrics(i2t), "t2i": multi_match_metrics(t2i)}


def _queries(judgments: Judgments, column: int) -> Tensor | None:
    return None if judgments.complete else judgments.extra[:, column].unique()


def relevant_ranks(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    pairs: Tensor,
    query_rows: Tensor | None = None,
    scores_at_once: int = SCORES_AT_ONCE,
) -> Iterator[RelevantRanks]:
    """Ranks of all positives, for blocks of queries.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        pairs: `(p, 2)` rows (query, positive), without repetition.
        query_rows: rows of the queries that count (None: all); each has a positive.
    """
    included = None
    if query_rows is not None:
        included = torch.zeros(len(queries), dtype=torch.bool).index_fill(0, query_rows, True)
    pairs = pairs[pairs[:, 0].argsort(stable=True)]
    query = pairs[:, 0].contiguous()
    for numbers, scores in whole_rows(score, queries, gallery, included, scores_at_once):
        first = torch.searchsorted(query, numbers)
        counts = torch.searchsorted(query, numbers, right=True) - first
        row = torch.arange(len(numbers)).repeat_interleave(counts)
        offset = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
        relevant = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        relevant[row.to(scores.device), pairs[first[row] + offset, 1].to(scores.device)] = True
        yield ranks_of_relevant(scores, relevant)


def ranks_of_relevant(scores: Tensor, relevant: Tensor) -> RelevantRanks:
    """Pessimistic ranks of the `relevant (q, g)` items by `scores (q, g)`.

    The rank of the k-th best positive is k plus the number of other items with at least its score.
    """
    counts = relevant.sum(1)
    right = scores.masked_fill(~relevant, -torch.inf).sort(1, descending=True).values
    right = right[:, : int(counts.max())].contiguous()
    wrong = scores.masked_fill(relevant, -torch.inf).sort(1).values
    before = scores.shape[1] - torch.searchsorted(wrong, right)
    ranks = before + torch.arange(1, right.shape[1] + 1, device=scores.device)
    return RelevantRanks(ranks.cpu(), counts.cpu())
