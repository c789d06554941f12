"""Boxes (n, 4), x1 y1 x2 y2 in pixels: overlap, suppression, and where anchors lie."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LARGEST = math.log(1000 / 16)
"""Of a predicted logarithm of growth: as much as from a cell to the longest image."""


def overlaps(boxes: Tensor, others: Tensor) -> Tensor:
    """(n, m) area of the intersection over that of the union."""
    low = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(dim=2)
    return shared / (_areas(boxes)[:, None] + _areas(others) - shared)


def suppress(boxes: Tensor, scores: Tensor, threshold: float, most: int) -> Tensor:
    """The boxes that stay, best first, at most `most`: each takes away those below it that it
    overlaps by more than `threshold`."""
    left = scores.argsort(descending=True, stable=True)
    kept: list[Tensor] = []
    while len(left) and len(kept) < most:
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[overlaps(boxes[best][None], boxes[left])[0] <= threshold]
    return torch.stack(kept) if kept else left


def surviving(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """(n, C) whether each of n boxes stays in each of C classes, whose scores are (n, C).

    As `suppress` in every class, in all of them at once: rank after rank, each class takes its
    next box. 1,600 classes one after the other take ten times as long, most of all on a GPU.
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
    """(height * width * A, 4) the anchors (A, 4) around the corner of every cell."""
    y = torch.arange(height, device=anchors.device) * stride
    x = torch.arange(width, device=anchors.device) * stride
    y, x = torch.meshgrid(y, x, indexing="ij")
    corners = torch.stack([x, y, x, y], dim=-1).reshape(-1, 1, 4)
    return (corners + anchors).reshape(-1, 4)


def moved(boxes: Tensor, deltas: Tensor) -> Tensor:
    """`boxes` moved by `deltas` (n, 4): of the centre in sides, and logarithms of growth."""
    sides = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + 0.5 * sides + deltas[:, :2] * sides
    half = 0.5 * sides * deltas[:, 2:].clamp(max=_LARGEST).exp()
    return torch.cat([centres - half, centres + half], dim=1)


def clipped(boxes: Tensor, height: int, width: int) -> Tensor:
    """The parts inside the image."""
    limits = torch.tensor([width, height, width, height], device=boxes.device)
    return torch.minimum(boxes.clamp(min=0), limits)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2:] - boxes[:, :2]).prod(dim=1)
