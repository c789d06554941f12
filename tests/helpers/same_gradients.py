"""A value and its gradients against those of a naive loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def assert_same(value: Tensor, expected: Tensor, inputs: Sequence[Tensor]) -> None:
    """Equal scalars (), with equal gradients of the `inputs`, to 1e-9."""
    assert value.shape == ()
    torch.testing.assert_close(value, expected, atol=1e-9, rtol=0)
    gradients = torch.autograd.grad(value, inputs)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, inputs), atol=1e-9, rtol=0)
