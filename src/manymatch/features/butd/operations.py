"""Suppression and region pooling from torchvision if it can be imported, else our equal functions.

torchvision cannot be imported beside the CPU build of torch.
"""

from __future__ import annotations

from torch import Tensor

from manymatch.features.butd import boxes as plain_boxes
from manymatch.features.butd import pooling as plain_pooling

try:
    from torchvision import ops as fast
except (ImportError, RuntimeError, OSError):  # missing, or built for another torch
    fast = None


def suppress(boxes: Tensor, scores: Tensor, threshold: float, most: int) -> Tensor:
    """See `boxes.suppress`."""
    if fast is None:
        return plain_boxes.suppress(boxes, scores, threshold, most)
    survivors: Tensor = fast.nms(boxes, scores, threshold)[:most]
    return survivors


def pool_regions(maps: Tensor, boxes: Tensor, size: int, scale: float) -> Tensor:
    """See `pooling.pool_regions`."""
    if fast is None:
        return plain_pooling.pool_regions(maps, boxes, size, scale)
    pooled: Tensor = fast.roi_pool(maps[None], [boxes], size, scale)
    return pooled
