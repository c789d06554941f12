"""A value and its gradients against those of a naive loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def assert_same(
    value: Tensor, expected: Tensor, inputs: Sequence[Tensor], atol: float = 1e-9
) -> None:
    """Equal values, and equal gradients of the `inputs` for random weights of the entries."""
    torch.testing.assert_close(value, expected, atol=atol, rtol=0)
    generator = torch.Generator().manual_seed(9)
    weights = torch.randn(value.shape, generator=generator, dtype=value.dtype)
    gradients, wanted = (
        torch.autograd.grad((weights * one).sum(), inputs) for one in (value, expected)
    )
    torch.testing.assert_close(gradients, wanted, atol=atol, rtol=0)
