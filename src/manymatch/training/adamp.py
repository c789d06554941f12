"""AdamP that never waits for the device: every decision is a `torch.where`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

_DEFAULTS = {"betas": (0.9, 0.999), "eps": 1e-8, "delta": 0.1, "wd_ratio": 0.1}


class AdamP(Optimizer):
    """AdamP by operations on all parameters at once.

    The state and, up to rounding, the result of a step are those of the authors' package `adamp`
    with its defaults. The package asks the device twice for each matrix whether to project its
    step.

    References:
        Heo et al., AdamP: Slowing Down the Slowdown for Momentum Optimizers on Scale-invariant
        Weights, ICLR 2021.
    """

    def __init__(self, params: Any, lr: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, **_DEFAULTS})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if parameters := [part for part in group["params"] if part.grad is not None]:
                self._update(parameters, group)
        return loss

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["weight_decay"]
        gradients: list[Any] = [parameter.grad for parameter in parameters]
        states = [self._counted(parameter) for parameter in parameters]
        means = [state["exp_avg"] for state in states]
        squares = [state["exp_avg_sq"] for state in states]
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, gradients, alpha=1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - beta2)
        scales = torch._foreach_sqrt(squares)
        torch._foreach_div_(scales, [math.sqrt(1 - beta2 ** state["step"]) for state in states])
        torch._foreach_add_(scales, group["eps"])
        changes = torch._foreach_div(means, scales)
        for parameter, gradient, change in zip(parameters, gradients, changes, strict=True):
            ratio: Tensor | float = 1.0
            if parameter.ndim > 1:
                ratio = _project(parameter, gradient, change, group)
            if decay:
                parameter.mul_(1 - lr * decay * ratio)
        torch._foreach_mul_(changes, [-lr / (1 - beta1 ** state["step"]) for state in states])
        torch._foreach_add_(parameters, changes)

    def _counted(self, parameter: Tensor) -> dict[str, Any]:
        """The state of the parameter, with the step that begins."""
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] += 1
        return state


def _project(parameter: Tensor, gradient: Tensor, change: Tensor, group: dict[str, Any]) -> Tensor:
    """Take out of `change` its part along the rows of the matrix, or along the whole matrix, where
    the gradient is nearly orthogonal to them. Return the factor of the weight decay, `()`."""
    eps, delta = group["eps"], group["delta"]
    weights, slopes, steps = (part.flatten(1) for part in (parameter, gradient, change))
    pairs = ((slopes, weights), (slopes, slopes), (weights, weights), (weights, steps))
    rows = torch.stack([(first * second).sum(1) for first, second in pairs])
    # The whole matrix as one more row, so that both views share the operations.
    dots, slopes2, weights2, along = torch.cat([rows, rows.sum(1, keepdim=True)], 1)
    norms = weights2.sqrt()
    cosines = dots.abs() / (slopes2.sqrt().clamp(min=eps) * norms.clamp(min=eps))
    row_is_small = cosines[:-1].amax() < delta / math.sqrt(weights.shape[1])
    tensor_is_small = cosines[-1] < delta / math.sqrt(weights.numel())
    parts = along / (norms + eps).square()
    taken = torch.where(row_is_small, parts[:-1], torch.where(tensor_is_small, parts[-1], 0.0))
    change.sub_(taken.view(-1, *[1] * (parameter.ndim - 1)) * parameter)
    return torch.where(row_is_small | tensor_is_small, group["wd_ratio"], 1.0)
