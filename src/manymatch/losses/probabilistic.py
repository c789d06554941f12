"""Losses of the probability that a pair matches: those of PCME, PCME++ and MSRM."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from manymatch.losses.contrastive import contrastive_terms, mean, without


def soft_contrastive(logits: Tensor, match: Tensor, left_out: Tensor | None = None) -> Tensor:
    """The mean over all pairs of `-log p` for a match and `-log(1 - p)` otherwise.

    `p = mean_s sigmoid(logits_s)` over the pair's samples. The loss is computed from log
    probabilities, so that it is exact for p near 0 and 1.

    Args:
        logits: `(n, m, S)` of S samples of each pair; in PCME `-a ||x_s - y_s|| + b`.
        match: `(n, m)` bool.
        left_out: `(n, m)` bool; pairs that add 0 to the sum. The divisor stays `n m`.

    Relations:
        `soft_match` lets the candidates of a query share one probability; here every pair has
        its own.

    References:
        Chun et al., Probabilistic Embeddings for Cross-Modal Retrieval (PCME), CVPR 2021,
        eq. 2 to 4; Oh et al., Hedged Instance Embedding, ICLR 2019.
    """
    sign = torch.where(match, 1.0, -1.0).to(logits.dtype)
    right = sign[:, :, None] * logits
    return -mean(without(log_mean_probability(right), left_out, 0.0))


def log_mean_probability(logits: Tensor) -> Tensor:
    """`log mean_s sigmoid(logits_s)` over the last dimension."""
    return logsigmoid(logits).logsumexp(-1) - math.log(logits.shape[-1])


def match_entropy(logits: Tensor, labels: Tensor, left_out: Tensor | None = None) -> Tensor:
    """The mean over all pairs of `-y log p - (1 - y) log(1 - p)` with `p = sigmoid(logit)`.

    Args:
        logits: `(n, m)`; in PCME++ `-a d + b` of the closed-form distance d.
        labels: `(n, m)`, the y in [0, 1].
        left_out: `(n, m)` bool; pairs that add 0 to the sum. The divisor stays `n m`.

    Relations:
        `soft_contrastive` has several samples of a pair, and labels of 0 and 1 alone.

    References:
        Chun, Improved Probabilistic Image-Text Representations (PCME++), ICLR 2024, eq. 2.
    """
    terms = binary_cross_entropy_with_logits(logits, labels, reduction="none")
    return mean(without(terms, left_out, 0.0))


def pseudo_positives(logits: Tensor, labels: Tensor) -> Tensor:
    """Labels in which the pseudo-positives of a query count as true.

    A pseudo-positive of a query and one of its true candidates is at least as near as the true one.
    The true candidates are those with the query's largest label. With one true candidate its
    pseudo-positives have the largest label too. With several, a label is the mean over the true
    candidates. The matching loss is linear in the labels, so that the loss is the mean too.

    Args:
        logits: `(q, c)`, larger for nearer candidates; transposed, the captions are the queries.
        labels: `(q, c)` in [0, 1].

    Returns:
        `(q, c)` labels, without a gradient.

    References:
        Chun, Improved Probabilistic Image-Text Representations (PCME++), ICLR 2024, section 2.3,
        where a query has one true candidate in a batch.
    """
    if not logits.numel():
        return labels
    largest = labels.amax(1, keepdim=True)
    is_true, nearness = labels == largest, logits.detach().contiguous()
    nearest_last = nearness.masked_fill(~is_true, torch.inf).sort(1).values
    passed = torch.searchsorted(nearest_last, nearness, right=True)
    share = passed.to(labels.dtype) / is_true.sum(1, keepdim=True)
    return share * largest + (1 - share) * labels


def soft_match(logits: Tensor, match: Tensor, left_out: Tensor | None = None) -> Tensor:
    """The mean over all pairs of `-log P_qc` for a match and `-log(1 - P_qc)` otherwise.

    With `e = exp(logits)`, `P_qc = e_qc / (e_qc + sum over the non-matches of q)` for a match, so
    that the matches of a query do not compete, and `P_qc = e_qc / sum over all candidates` for a
    non-match. A query with one match has the paper's softmax throughout. Both terms are exact for P
    near 0 and 1.

    Args:
        logits: `(q, c)`: MSRM's `-tau d2(q, c)` for L_d, `lambda cos(mu_q, U_c)` for L_h; or
            `(..., q, c)`: several of them, whose losses `(...)` are computed together.
        match: `(q, c)` bool; all captions of an image are its matches.
        left_out: `(q, c)` bool; candidates of a query that count in no sum. The divisor of the
            mean stays `q c`.

    Relations:
        The terms of matches are those of `info_nce`. Unlike `info_nce`, this loss repels each
        negative by itself, too.

    References:
        Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval (MSRM),
        CVPR 2023, eq. 5 to 7 (L_d) and 11 (L_h), printed for queries with one match.
    """
    if not logits.numel():
        return logits.sum((-2, -1))  # 0, and part of the graph
    # The floor is finite, because the gradient of a logsumexp over -inf alone is NaN.
    logits = without(logits, left_out, torch.finfo(logits.dtype).min / 4)
    not_matching = _log_complement(logits, logits.log_softmax(-1))
    terms = torch.where(match, contrastive_terms(logits, match), -not_matching)
    return without(terms, left_out, 0.0).mean((-2, -1))


def _log_complement(logits: Tensor, log_p: Tensor) -> Tensor:
    """`log(1 - P)`.

    Only the most probable candidate can have P > 1/2, where `1 - P` would round to 0. Its value is
    computed from the logits of the other candidates.
    """
    highest = logits.argmax(-1, keepdim=True)
    is_highest = torch.zeros_like(log_p, dtype=torch.bool).scatter(-1, highest, True)
    others = log_p.masked_fill(is_highest, torch.finfo(log_p.dtype).min / 2)
    far_from_one = log_p.masked_fill(is_highest, -math.log(2))
    return torch.where(
        is_highest, others.logsumexp(-1, keepdim=True), torch.log1p(-far_from_one.exp())
    )
