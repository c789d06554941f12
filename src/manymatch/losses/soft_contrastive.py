"""PCME's loss: each pair matches or does not match, with a probability from samples."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import logsigmoid

from manymatch.losses.mean import mean


def soft_contrastive(logits: Tensor, match: Tensor) -> Tensor:
    """The mean over all pairs of `-log p` for a match and `-log(1 - p)` otherwise.

    `p = mean_s sigmoid(logits_s)` over the pair's samples. The loss is computed from log
    probabilities, so that it is exact for p near 0 and 1.

    Args:
        logits: `(n, m, S)` of S samples of each pair; in PCME `-a ||x_s - y_s|| + b`.
        match: `(n, m)` bool.

    Relations:
        `soft_match` lets the candidates of a query share one probability; here every pair has
        its own.

    References:
        Chun et al., Probabilistic Embeddings for Cross-Modal Retrieval (PCME), CVPR 2021,
        eq. 2 to 4; Oh et al., Hedged Instance Embedding, ICLR 2019.
    """
    right = logits.where(match[:, :, None], -logits)
    return -mean(log_mean_probability(right))


def log_mean_probability(logits: Tensor) -> Tensor:
    """`log mean_s sigmoid(logits_s)` over the last dimension."""
    return logsigmoid(logits).logsumexp(-1) - math.log(logits.shape[-1])
