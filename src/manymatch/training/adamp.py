"""AdamP that never waits for the device: every decision is a `torch.where`."""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
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
        changes = list(torch._foreach_div(means, scales))
        torch._foreach_mul_(changes, [-lr / (1 - beta1 ** state["step"]) for state in states])
        matrices = [n for n, parameter in enumerate(parameters) if parameter.ndim > 1]
        matrices.sort(key=lambda n: _columns(parameters[n]))  # equally long rows side by side
        vectors = [parameter for parameter in parameters if parameter.ndim <= 1]
        if decay and vectors:
            torch._foreach_mul_(vectors, 1 - lr * decay)
        if matrices:
            weights, slopes, steps = (
                [part[n] for n in matrices] for part in (parameters, gradients, changes)
            )
            projected = _projected(weights, slopes, steps, group)
            for n, change in zip(matrices, projected, strict=True):
                changes[n] = change
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


@lru_cache(maxsize=16)
@torch.inference_mode(False)
def _layout(
    shapes: tuple[tuple[int, int], ...], delta: float, device: torch.device
) -> tuple[list[slice], Tensor, Tensor, Tensor]:
    """The layout of M matrices of the `shapes` (rows, columns), in the order of their columns: the
    runs of matrices with equally long rows; the number of rows of each matrix `(M,)`; the matrix of
    each of all V rows `(V,)`; and the largest cosines `(2, M)` of a projection by rows, and by the
    whole matrix."""
    starts = [n for n, shape in enumerate(shapes) if not n or shape[1] != shapes[n - 1][1]]
    runs = [slice(*ends) for ends in pairwise([*starts, len(shapes)])]
    counts = torch.tensor([rows for rows, _ in shapes])
    sizes = torch.tensor([[columns, rows * columns] for rows, columns in shapes]).T.double()
    matrix = torch.arange(len(shapes)).repeat_interleave(counts)
    return runs, counts.to(device), matrix.to(device), (delta / sizes.sqrt()).float().to(device)


def _projected(
    parameters: list[Tensor], gradients: list[Tensor], changes: list[Tensor], group: dict[str, Any]
) -> list[Tensor]:
    """The `changes` without their part along the rows of their matrix, or along the whole matrix,
    where the gradient is nearly orthogonal to them; minus the weight decay, which is then smaller.

    Matrices with equally long rows are joined. The number of operations depends on the number of
    such lengths, but not on the number of matrices. The joined matrices take three times the memory
    of the parameters, which the activations have left by then.
    """
    eps, shapes = group["eps"], tuple((len(part), _columns(part)) for part in parameters)
    runs, counts, matrix, limits = _layout(shapes, group["delta"], parameters[0].device)
    weights, slopes, steps = (
        [torch.cat([part.flatten(1) for part in parts[run]]) for run in runs]
        for parts in (parameters, gradients, changes)
    )
    # Of each row: gradient times weights, both squares, and change times weights.
    rows = torch.stack(
        [
            _sums(slopes, weights),
            torch.cat([torch.linalg.vector_norm(part, dim=1) for part in slopes]).square(),
            torch.cat([torch.linalg.vector_norm(part, dim=1) for part in weights]).square(),
            _sums(steps, weights),
        ],
        1,
    )
    lengths: Any = {"lengths": counts, "unsafe": True}  # else the host would check them
    wholes = torch.segment_reduce(rows, "sum", **lengths)
    (row_cosines, row_shares), (cosines, shares) = (_turned(part, eps) for part in (rows, wholes))
    by_rows = torch.segment_reduce(row_cosines, "max", **lengths) < limits[0]
    by_whole = cosines < limits[1]
    decay = group["lr"] * group["weight_decay"]
    decays = torch.where(by_rows | by_whole, decay * group["wd_ratio"], decay)
    of_matrix = torch.stack([by_rows, torch.where(by_whole, shares, 0.0), decays])
    row_is_small, share, decay_of_row = of_matrix.index_select(1, matrix)
    taken = torch.where(row_is_small.bool(), row_shares, share) + decay_of_row
    factors = taken.split([len(part) for part in weights])
    projected: list[Tensor] = []
    for run, step, weight, factor in zip(runs, steps, weights, factors, strict=True):
        step.addcmul_(factor[:, None], weight, value=-1)
        projected += step.split([row_count for row_count, _ in shapes[run]])
    return [part.view_as(change) for part, change in zip(projected, changes, strict=True)]


def _columns(matrix: Tensor) -> int:
    return matrix.numel() // len(matrix)


def _sums(first: list[Tensor], second: list[Tensor]) -> Tensor:
    """`(V,)`: the sum of the products in each row of all blocks."""
    return torch.cat([(one * other).sum(1) for one, other in zip(first, second, strict=True)])


def _turned(sums: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`sums (k, 4)` of k rows or matrices -> `(k,)` cosines between gradient and weights, and what
    the change has along the weights."""
    dots, slopes, weights, along = sums.unbind(1)
    norms = weights.sqrt()
    cosines = dots.abs() / (slopes.sqrt().clamp(min=eps) * norms.clamp(min=eps))
    return cosines, along / (norms + eps).square()
