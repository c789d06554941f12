"""Batch norms whose statistics are those of the whole batch, which several processes share."""

from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from manymatch.batch.shared_rows import world_size
from manymatch.similarities.vectors import keep_precision


class SharedBatchNorm(_BatchNorm):
    """A batch norm over `(n, C, ...)`. In training it uses the statistics of all processes.

    The processes add sums, square sums and numbers of rows in one exchange. `nn.SyncBatchNorm`
    would wait for the GPU in each step, to leave out processes without rows.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        """Every number of dimensions is right."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or world_size() == 1:
            return super().forward(input)
        with keep_precision(input):
            output, mean, variance, count = _Shared.apply(input, self.weight, self.bias, self.eps)
        with torch.no_grad():
            assert self.running_mean is not None and self.running_var is not None
            assert self.num_batches_tracked is not None and self.momentum is not None
            self.num_batches_tracked += 1
            self.running_mean.lerp_(mean.to(self.running_mean), self.momentum)
            unbiased = variance * (count / (count - 1))
            self.running_var.lerp_(unbiased.to(self.running_var), self.momentum)
        return output


def share_statistics(module: nn.Module) -> None:
    """Let all batch norms in `module` use the statistics of all processes."""
    for part in module.modules():
        if isinstance(part, _BatchNorm):
            part.__class__ = SharedBatchNorm  # the same parameters, buffers and settings


class _Shared(torch.autograd.Function):
    """The output, and the mean, the biased variance `(C,)` and the count of all rows."""

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, ...]:
        ctx.rows = [0, *range(2, input.ndim)]
        ctx.channels = [1, -1, *[1] * (input.ndim - 2)]
        wide = input.to(torch.promote_types(input.dtype, weight.dtype))
        variance, mean = torch.var_mean(wide, ctx.rows, correction=0)
        # In float64 the square of a mean that is far from zero leaves the variance exact.
        mean, variance = mean.double(), variance.double()
        own = mean.new_full((1,), input.numel() // input.shape[1])
        sums = torch.cat([own, mean * own, (variance + mean.square()) * own])
        distributed.all_reduce(sums)
        count, total, squares = sums.split([1, len(mean), len(mean)])
        mean = total / count
        variance = squares / count - mean.square()
        scale = (variance + eps).rsqrt().to(wide.dtype)
        centre = mean.to(wide.dtype)
        ctx.save_for_backward(input, weight, centre, scale, count.to(wide.dtype))
        normed = (wide - centre.view(ctx.channels)) * (scale * weight).view(ctx.channels)
        output = (normed + bias.view(ctx.channels)).to(input.dtype)
        ctx.mark_non_differentiable(mean, variance, count)
        return output, mean, variance, count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        input, weight, centre, scale, count = ctx.saved_tensors
        gradient = gradient.to(scale.dtype)
        normed = (input - centre.view(ctx.channels)) * scale.view(ctx.channels)
        own = torch.cat([gradient.sum(ctx.rows), (gradient * normed).sum(ctx.rows)])
        sums = own.clone()
        distributed.all_reduce(sums)
        plain, along = (sums / count).view(2, *ctx.channels[1:]).unbind(0)
        inner = (gradient - plain - normed * along) * (scale * weight).view(ctx.channels)
        bias_gradient, weight_gradient = own.chunk(2)
        return inner.to(input.dtype), weight_gradient, bias_gradient, None
