"""Recall of the annotated pairs, and multi-match metrics against all positives."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.relevance import Judgments
from manymatch.evaluation.ranking.metrics import (
    RelevantRanks,
    ambiguity,
    multi_match_metrics,
    recall_metrics,
    rsum,
)
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model.scores import Score, whole_rows


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


def multi_match(split: RankedSplit, judgments: Judgments) -> dict[str, dict[str, Any]]:
    """`i2t` and `t2i` against annotated and judged pairs: `multi_match_metrics`, `by_positives`,
    and `others`, the R-P of the judged pairs alone: annotated items are taken out of the ranking.

    If the judgments are complete all queries count, otherwise the queries with a judged pair beyond
    their annotated pairs; for `others` always these. Ties are pessimistic: an irrelevant item of
    equal score ranks before a positive.

    Raises:
        DataError: a score is not finite.
    """
    images, texts, image_index = split.embedded.gallery
    own = torch.stack([image_index.cpu(), torch.arange(len(image_index))], 1)
    extra = judgments.extra
    return {
        "i2t": _multi_match(split.score, images, texts, own, extra, judgments.complete),
        "t2i": _multi_match(
            split.from_texts, texts, images, own.flip(1), extra.flip(1), judgments.complete
        ),
    }


def _multi_match(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    own: Tensor,
    extra: Tensor,
    complete: bool,
) -> dict[str, Any]:
    """The metrics of one direction; `own` and `extra` are pairs (query, item)."""
    judged = torch.zeros(len(queries), dtype=torch.bool).index_fill(0, extra[:, 0], True)
    ranks, ranks_elsewhere = [], []
    for numbers, scores in whole_rows(score, queries, gallery, None if complete else judged):
        annotated, others = (_relevant(pairs, numbers, scores) for pairs in (own, extra))
        ranks.append(ranks_of_relevant(scores, annotated | others))
        rows = judged[numbers].to(scores.device)
        if rows.any():
            left = scores.masked_fill(annotated, -torch.inf)
            ranks_elsewhere.append(ranks_of_relevant(left[rows], others[rows]))
    return {
        **multi_match_metrics(ranks),
        "others": multi_match_metrics(ranks_elsewhere)["r_precision"],
        "by_positives": ambiguity(ranks),
    }


def relevant_ranks(
    score: Score, queries: Embeddings, gallery: Embeddings, pairs: Tensor
) -> Iterator[RelevantRanks]:
    """Ranks of all positives, for blocks of queries.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        pairs: `(p, 2)` rows (query, positive), without repetition; each query has a positive.
    """
    for numbers, scores in whole_rows(score, queries, gallery):
        yield ranks_of_relevant(scores, _relevant(pairs, numbers, scores))


def _relevant(pairs: Tensor, numbers: Tensor, scores: Tensor) -> Tensor:
    """Which items of `scores (q, g)` are in `pairs` with the queries `numbers (q,)`, ascending."""
    pairs = pairs[torch.isin(pairs[:, 0], numbers)]
    rows = torch.searchsorted(numbers, pairs[:, 0].contiguous())
    relevant = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    relevant[rows.to(scores.device), pairs[:, 1].to(scores.device)] = True
    return relevant


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
