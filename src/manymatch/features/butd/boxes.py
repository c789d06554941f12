"""Boxes (n, 4), x1 y1 x2 y2 in pixels: overlap, suppression and anchors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MAX_LOG_GROWTH = math.log(1000 / 16)
"""Limit of a predicted logarithm of growth: from one cell to the longest image."""


def overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """Return the intersection over union (n, m)."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2)
    return shared / (_areas(boxes)[:, None] + _areas(others) - shared)


def suppress(boxes: Tensor, scores: Tensor, threshold: float, most: int) -> Tensor:
    """Return the indexes of at most `most` remaining boxes, best first.

    Each remaining box removes the boxes with lower scores that it overlaps by more than
    `threshold`.
    """
    left = scores.argsort(descending=True, stable=True)
    survivors: list[Tensor] = []
    while len(left) and len(survivors) < most:
        best, left = left[0], left[1:]
        survivors.append(best)
        left = left[overlaps(boxes[best][None], boxes[left])[0] <= threshold]
    return torch.stack(survivors) if survivors else left


def surviving(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return whether each of n boxes remains in each of C classes, (n, C) like the scores.

    This equals `suppress` in every class, for all classes at once: at each rank, each class takes
    its next box. A loop over 1,600 classes takes ten times as long, and more on a GPU.
    """
    order = scores.argsort(dim=0, descending=True, stable=True).T
    ranks = order.argsort(dim=1)
    near = overlaps(boxes, boxes) > threshold
    stays = torch.ones_like(order, dtype=torch.bool)
    for rank, current in enumerate(order.unbind(dim=1)):
        alive = stays.gather(1, current[:, None])
        stays &= ~(near[current] & alive & (ranks > rank))
    return stays.T


def anchor_grid(anchors: Tensor, height: int, width: int, stride: int) -> Tensor:
    """Return the anchors (A, 4) around the corner of every cell, (height * width * A, 4)."""
    y = torch.arange(height, device=anchors.device) * stride
    x = torch.arange(width, device=anchors.device) * stride
    y, x = torch.meshgrid(y, x, indexing="ij")
    corners = torch.stack([x, y, x, y], dim=-1).reshape(-1, 1, 4)
    return (corners + anchors).reshape(-1, 4)


def moved(boxes: Tensor, deltas: Tensor) -> Tensor:
    """Move the centres of `boxes` by `deltas[:, :2]` sides, and scale by `exp(deltas[:, 2:])`."""
    sides = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + 0.5 * sides + deltas[:, :2] * sides
    half = 0.5 * sides * deltas[:, 2:].clamp(max=_MAX_LOG_GROWTH).exp()
    return torch.cat([centres - half, centres + half], dim=1)


def clipped(boxes: Tensor, height: int, width: int) -> Tensor:
    """Return the parts of `boxes` inside the image."""
    limits = torch.tensor([width, height, width, height], device=boxes.device)
    return torch.minimum(boxes.clamp(min=0), limits)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
