"""Scores of all pairs of sets, block by block if no gradient is needed.

The cosines of all elements of all pairs take K L times the memory of the scores. Without gradient
they are made in blocks that stay in the processor's cache, and each block overwrites the last.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from manymatch.batch.parallel_map import map_parallel
from manymatch.similarities.vectors import full_precision, keep_precision, plane_cosines

Reduce = Callable[[Tensor], Tensor]
"""Cosines `(K, L, n, m)`, planes of any strides with contiguous rows -> scores `(n, m)`. Each pair
of sets has a score of its own. Without gradient the function may overwrite the cosines."""

_CPU_ELEMENTS, _GPU_ELEMENTS = 1024, 8192
"""Elements on each edge of a block, found by measurement: 4 MiB of cosines on a CPU core."""
_IMAGES_FOR_ONE_TEXT = 16
"""A block of a single text has this many times the images. Otherwise the start of each operation
takes longer than the arithmetic."""
_CPU_PAIRS, _GPU_PAIRS = 16384, 2**20
"""Pairs of sets that are reduced at once: their planes and temporary planes fit into a cache."""


def scored(images: Tensor, texts: Tensor, reduce: Reduce, *learned: Tensor) -> Tensor:
    """`reduce` of the cosines of `images (n, K, D)` and `texts (m, L, D)`: `(n, m)`.

    All pairs at once if the sets or the `learned` tensors need a gradient, else in blocks.
    """
    if needs_gradient(images, texts, *learned):
        return reduce(plane_cosines(images, texts))
    return blockwise(images, texts, reduce)


def needs_gradient(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


@torch.no_grad()
def blockwise(images: Tensor, texts: Tensor, reduce: Reduce, scale: float = 1.0) -> Tensor:
    """`reduce` of `scale` times the cosines, without gradient and in bounded memory."""
    images, texts = full_precision(images), full_precision(texts)
    cpu = images.device.type == "cpu"
    edge = _CPU_ELEMENTS if cpu else _GPU_ELEMENTS
    scores = images.new_empty(len(images), len(texts))
    rows_at_once = _IMAGES_FOR_ONE_TEXT * edge if len(texts) == 1 else edge
    row_blocks = runs(len(images), rows_at_once // images.shape[1])
    column_blocks = runs(len(texts), edge // texts.shape[1])
    if len(texts) == 1:
        tasks = [([rows], slice(0, 1)) for rows in row_blocks]
    else:
        tasks = [(row_blocks, columns) for columns in column_blocks]

    def score(task: tuple[list[slice], slice]) -> None:
        rows_of_task, columns = task
        buffer = images.new_empty(0)
        for rows in rows_of_task:
            cosines = _cosines(images[rows], texts[columns], scale, buffer)
            for part in pieces(cosines):
                scores[rows, columns][part] = reduce(cosines[:, :, part])

    if cpu:
        map_parallel(score, tasks)
    else:
        for task in tasks:
            score(task)
    return scores


def runs(count: int, size: int) -> list[slice]:
    """`range(count)` in runs of at most `size` (at least 1)."""
    size = max(1, size)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def pieces(cosines: Tensor) -> list[slice]:
    """Runs of the images of `cosines (K, L, n, m)` that are fastest when reduced at once."""
    n, m = cosines.shape[2:]
    pairs = _CPU_PAIRS if cosines.device.type == "cpu" else _GPU_PAIRS
    return runs(n, pairs // max(1, m))


def _cosines(images: Tensor, texts: Tensor, scale: float, buffer: Tensor) -> Tensor:
    (n, n_image, _), (m, n_text, _) = images.shape, texts.shape
    flat = images.flatten(0, 1)
    if m == 1:  # the images are read once, not once for each element of the text
        with keep_precision(images):  # see the product below
            product = scale * texts[0] @ flat.T
        return product.view(n_text, n, n_image).permute(2, 0, 1).contiguous()[..., None]
    cosines = buffer.resize_(n_text, n * n_image, m)
    for index in range(n_text):  # texts along the last axis, without copying them into this order
        cosines[index].addmm_(flat, texts[:, index].T, beta=0, alpha=scale)
    return cosines.view(n_text, n, n_image, m).permute(2, 0, 1, 3)
