"""The term that contrastive losses with several positives average."""

from __future__ import annotations

import torch
from torch import Tensor


def contrastive_terms(logits: Tensor, positive: Tensor) -> Tensor:
    """`-log(exp(z_ac) / (exp(z_ac) + sum_k exp(z_ak)))`, k over the negatives of anchor a alone.

    Other positives of an anchor are neither attracted nor pushed away by a positive's term.

    Args:
        logits: `(anchors, candidates)` scores over temperature.
        positive: the same shape, bool; what is not positive is negative.

    Returns:
        `(anchors, candidates)`; meaningful where `positive`. An anchor without negatives gives 0.
    """
    # A finite floor: the gradient of a logsumexp over nothing but -inf is not a number.
    floor = torch.finfo(logits.dtype).min / 2
    negatives = logits.masked_fill(positive, floor).logsumexp(1, keepdim=True)
    return -torch.nn.functional.logsigmoid(logits - negatives)
