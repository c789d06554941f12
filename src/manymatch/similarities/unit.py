"""Vectors of length 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from manymatch.similarities.pairs import full_precision

_SMALLEST = 1e-12
"""A shorter vector is divided by this length, as by `torch.nn.functional.normalize`."""


def unit(vectors: Tensor) -> Tensor:
    """`vectors (..., D)` divided by their lengths, in float32 or better.

    `torch.nn.functional.normalize` gives the same values. Its backward pass has three times as many
    operations, which a GPU starts one by one.
    """
    result: Tensor = _Unit.apply(full_precision(vectors))
    return result


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True).clamp_min_(_SMALLEST)
        result = vectors / lengths
        ctx.save_for_backward(result, lengths)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """The part of the gradient across the vector, over the vector's length."""
        result, lengths = ctx.saved_tensors
        along = (gradient * result).sum(-1, keepdim=True)
        return torch.addcmul(gradient, result, along, value=-1).div_(lengths)
