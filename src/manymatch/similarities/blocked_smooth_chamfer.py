"""Smooth-Chamfer without gradient, at the price of little more than its matrix product.

The `(n, m, K, L)` cosines are made in blocks that stay in the processor's cache; one exponential
serves both directions; and because a sum of logarithms is the logarithm of a product, a pair
costs a few logarithms instead of K + L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from manymatch.side_by_side import side_by_side

_CPU_ELEMENTS, _GPU_ELEMENTS = 1024, 8192
"""Elements (set members) on each edge of a block: measured; 4 MiB of cosines on a CPU core."""
_LONGEST = 1.01
"""Norm products up to which `factors_per_log` holds (1, and some rounding of half precision)."""


def factors_per_log(alpha: float, size: int, dtype: torch.dtype) -> int:
    """How many sums of `size` terms `exp(alpha cos)` can be multiplied within `dtype`'s range.

    0 means that a single one could overflow or underflow.
    """
    finfo = torch.finfo(dtype)
    room = min(math.log(finfo.max), -math.log(finfo.tiny))
    return int(room / (alpha * _LONGEST + math.log(size)))


def blocked_smooth_chamfer(images: Tensor, texts: Tensor, alpha: float) -> Tensor:
    """`smooth_chamfer` of `images (n, K, D)` and `texts (m, L, D)`, without gradient.

    Needs `factors_per_log(alpha, max(K, L), dtype) >= 1`; exact to rounding for every cosine.
    """
    on_cpu = images.device.type == "cpu"
    edge = _CPU_ELEMENTS if on_cpu else _GPU_ELEMENTS
    scores = images.new_empty(len(images), len(texts))
    row_blocks = _runs(len(images), max(1, edge // images.shape[1]))
    column_blocks = _runs(len(texts), max(1, edge // texts.shape[1]))

    def score(columns: slice) -> None:
        buffer = images.new_empty(0)
        for rows in row_blocks:
            scores[rows, columns] = _block(images[rows], texts[columns], alpha, buffer)

    if on_cpu:
        side_by_side(score, column_blocks)
    else:
        for columns in column_blocks:
            score(columns)
    return scores


def _runs(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _block(images: Tensor, texts: Tensor, alpha: float, buffer: Tensor) -> Tensor:
    n, n_image, _ = images.shape
    m, n_text, _ = texts.shape
    exponentials = buffer.resize_(n_text, n * n_image, m)
    flat = images.flatten(0, 1)
    for index in range(n_text):  # texts along the last axis: every sum below runs over whole rows
        exponentials[index].addmm_(flat, texts[:, index].T, beta=0, alpha=alpha)
    exponentials = exponentials.exp_().view(n_text, n, n_image, m)
    factors = factors_per_log(alpha, max(n_image, n_text), buffer.dtype)
    to_texts = _sum_of_logs(exponentials.sum(0).unbind(1), factors)
    to_images = _sum_of_logs(exponentials.sum(2).unbind(0), factors)
    return to_texts.div_(2 * alpha * n_image).add_(to_images, alpha=1 / (2 * alpha * n_text))


def _sum_of_logs(values: Sequence[Tensor], factors: int) -> Tensor:
    groups = (values[start : start + factors] for start in range(0, len(values), factors))
    return reduce(torch.add, (reduce(torch.mul, group).log() for group in groups))
