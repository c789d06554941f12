"""Vectors: full precision, length 1, and the cosines and distances of all pairs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_SHORTEST = 1e-12
"""Shorter vectors are divided by this length."""


def full_precision(vectors: Tensor) -> Tensor:
    """`vectors`, converted to float32 if they have half precision."""
    return vectors.float() if vectors.dtype in (torch.float16, torch.bfloat16) else vectors


def keep_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """A block in which autocast rounds nothing on the device of `tensor`."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind):  # to disable autocast takes as long as three operations
        return nullcontext()
    return torch.autocast(kind, enabled=False)


def unit(vectors: Tensor) -> Tensor:
    """`vectors (..., D)` divided by their lengths, in float32 or better; 0 remains 0."""
    result: Tensor = _Unit.apply(full_precision(vectors))
    return result


class _Unit(torch.autograd.Function):
    """`torch.nn.functional.normalize` with a backward pass of 5 kernels instead of 14."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True).clamp_min_(_SHORTEST)
        units = vectors / lengths
        ctx.save_for_backward(units, lengths)
        return units

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        units, lengths = ctx.saved_tensors
        along = (gradient * units).sum(-1, keepdim=True)
        # 0 where the length is a constant.
        along = torch.ops.aten.threshold_backward(along, lengths, _SHORTEST)
        return torch.addcmul(gradient, units, along, value=-1).div_(lengths)


def cosine(images: Tensor, texts: Tensor) -> Tensor:
    """The cosine of two vectors; for two sets, the mean cosine over all pairs of elements.

    Args:
        images: `(n, K, D)`, L2-normalised.
        texts: `(m, L, D)`, L2-normalised.

    Returns:
        `(n, m)` in [-1, 1]. With K = L = 1 this is the score of VSE++, VSE-infinity and CORA.
    """
    return pair_cosines(_mean(images), _mean(texts)).squeeze((2, 3))


def _mean(sets: Tensor) -> Tensor:
    """The mean `(n, 1, D)` of each set `(n, K, D)`; a single vector is not copied."""
    return sets if sets.shape[1] == 1 else full_precision(sets).mean(1, keepdim=True)


def pair_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """Cosines `(n, m, K, L)` of the elements of `images (n, K, D)` and `texts (m, L, D)`.

    Both are L2-normalised. The cosines are one matrix product, never in half precision: at a
    temperature of 0.01 the rounding error of a bfloat16 cosine is as large as relevant differences.
    """
    product = _product(images.flatten(0, 1), texts.flatten(0, 1))
    n, m = images.shape[0], texts.shape[0]
    return product.view(n, images.shape[1], m, texts.shape[1]).transpose(1, 2)


def plane_cosines(images: Tensor, texts: Tensor) -> Tensor:
    """The cosines as `(K, L, n, m)`: for two elements a plane of all pairs of sets.

    The rows of a plane are contiguous, so that an operation on planes reads memory in order.
    """
    (n, n_image, _), (m, n_text, _) = images.shape, texts.shape
    product = _product(images.transpose(0, 1).flatten(0, 1), texts.transpose(0, 1).flatten(0, 1))
    return product.view(n_image, n, n_text, m).transpose(1, 2)


def _product(rows: Tensor, columns: Tensor) -> Tensor:
    with keep_precision(rows):
        return full_precision(rows) @ full_precision(columns).T
