"""MSRM's matching loss: the probabilities of all candidates to match a query."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from manymatch.losses.contrastive import contrastive_terms
from manymatch.losses.mean import mean


def soft_match(logits: Tensor, match: Tensor) -> Tensor:
    """The mean over all pairs of `-log P_qc` for a match and `-log(1 - P_qc)` otherwise.

    With `e = exp(logits)`, `P_qc = e_qc / (e_qc + sum over the non-matches of q)` for a match, so
    that the matches of a query do not compete, and `P_qc = e_qc / sum over all candidates` for a
    non-match. A query with one match has the paper's softmax throughout. Both terms are exact for P
    near 0 and 1.

    Args:
        logits: `(q, c)`: MSRM's `-tau d2(q, c)` for L_d, `lambda cos(mu_q, U_c)` for L_h.
        match: `(q, c)` bool; all captions of an image are its matches.

    Relations:
        The terms of matches are those of `info_nce`. Unlike `info_nce`, this loss repels each
        negative by itself, too.

    References:
        Wang et al., Multilateral Semantic Relations Modeling for Image Text Retrieval (MSRM),
        CVPR 2023, eq. 5 to 7 (L_d) and 11 (L_h), printed for queries with one match.
    """
    if not logits.numel():
        return mean(logits)
    not_matching = _log_complement(logits, logits.log_softmax(1))
    return torch.where(match, contrastive_terms(logits, match), -not_matching).mean()


def _log_complement(logits: Tensor, log_p: Tensor) -> Tensor:
    """`log(1 - P)`.

    Only the most probable candidate can have P > 1/2, where `1 - P` would round to 0. Its value is
    computed from the logits of the other candidates.
    """
    highest = logits.argmax(1, keepdim=True)
    is_highest = torch.zeros_like(log_p, dtype=torch.bool).scatter(1, highest, True)
    others = log_p.masked_fill(is_highest, torch.finfo(log_p.dtype).min / 2)
    far_from_one = log_p.masked_fill(is_highest, -math.log(2))
    return torch.where(
        is_highest, others.logsumexp(1, keepdim=True), torch.log1p(-far_from_one.exp())
    )
