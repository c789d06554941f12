"""Work on the rows of a batch that the processes of a training share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed


def world_size() -> int:
    """The number of processes that train together."""
    initialised = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if initialised else 1


def by_rows(compute: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """`compute(*rows)`; each process of a training computes an equal share of the rows.

    The processes have the same rows, of the whole batch, and the same loss of the result. As in
    `training.gather`, gradients of what `compute` reads are right after the mean over processes.
    The result is not a part of what another `by_rows` computes: the gradient of that is a share.

    Args:
        compute: gives equally many rows for each share, without regard to other rows.
        rows: tensors with n rows. If n is 0, or the number of processes does not divide n, each
            process computes all rows.
    """
    world, count = world_size(), len(rows[0])
    if world == 1 or not count or count % world:
        return compute(*rows)
    share = count // world
    start = distributed.get_rank() * share
    result: Tensor = _Shared.apply(compute(*(part[start : start + share] for part in rows)))
    return result


class _Shared(torch.autograd.Function):
    """Joins the shares of all processes; all of them receive the same gradient of the whole."""

    @staticmethod
    def forward(ctx: Any, share: Tensor) -> Tensor:
        ctx.rows = len(share)
        whole = share.new_empty(world_size() * len(share), *share.shape[1:])
        distributed.all_gather_into_tensor(whole, share.contiguous())
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        # The mean over processes follows, and no other process has the gradient of this share.
        start = distributed.get_rank() * ctx.rows
        return gradient[start : start + ctx.rows] * world_size()
