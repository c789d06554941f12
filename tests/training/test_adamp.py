"""AdamP gives the package's numbers."""

from __future__ import annotations

import adamp
import pytest
import torch
from torch import nn

from manymatch.training.adamp import AdamP


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("turned", ["not", "rows", "whole"])
def test_steps_equal_the_packages(weight_decay: float, turned: str) -> None:
    """Gradients as they come, orthogonal to every row of a matrix, or only to the whole matrix."""
    random = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random)

    weights = [drawn(6, 20), drawn(8, 3, 2, 2), drawn(5), drawn(2, 1), torch.zeros(3, 4)]
    ours, theirs = ([nn.Parameter(part.clone()) for part in weights] for _ in range(2))
    optimizers = (
        AdamP(ours, lr=0.05, weight_decay=weight_decay),
        adamp.AdamP(theirs, lr=0.05, weight_decay=weight_decay),
    )
    for step in range(5):
        for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
            gradient = drawn(*own.shape)
            if turned != "not" and own.ndim > 1:
                view = (len(own), -1) if turned == "rows" else (1, -1)
                weight, slope = other.detach().view(view), gradient.view(view)
                size = weight.square().sum(1, keepdim=True).clamp(min=1e-12)
                slope -= weight * (weight * slope).sum(1, keepdim=True) / size
            # A parameter without gradient in the first step is one step behind the others.
            late = number == 0 and step == 0
            own.grad, other.grad = (None, None) if late else (gradient, gradient.clone())
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    for own, other in zip(*(optimizer.state.values() for optimizer in optimizers), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-6, atol=1e-6)
