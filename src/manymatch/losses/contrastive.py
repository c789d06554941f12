"""The term of contrastive losses with several positives for an anchor."""

from __future__ import annotations

import torch
from torch import Tensor


def contrastive_terms(logits: Tensor, positive: Tensor) -> Tensor:
    """`-log(exp(z_ac) / (exp(z_ac) + sum_k exp(z_ak)))`, k over the negatives of anchor a alone.

    The term of one positive neither attracts nor repels the anchor's other positives.

    Args:
        logits: `(anchors, candidates)` scores over temperature.
        positive: `(anchors, candidates)` bool; the other pairs are negatives.

    Returns:
        `(anchors, candidates)`, valid where `positive`; 0 for an anchor without negatives.
    """
    # The floor is finite, because the gradient of a logsumexp over -inf alone is NaN.
    floor = torch.finfo(logits.dtype).min / 2
    negatives = logits.masked_fill(positive, floor).logsumexp(1, keepdim=True)
    return -torch.nn.functional.logsigmoid(logits - negatives)
