"""Work on the rows of a batch that the processes of a training share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed


def world_size() -> int:
    """The number of processes that train together."""
    initialised = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if initialised else 1


def share_rows(compute: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """`compute(*rows)`; each process of a training computes an equal share of the rows.

    The processes have the same rows, of the whole batch, and the same loss. A process may compute
    only a part of a gradient. For tensors that every process has (parameters, the embeddings of
    `training.gather`, the result of `share_rows`), the MEAN over processes is the true gradient. A
    share exists in one process alone: its gradient there is `world` times the true gradient, the
    SUM of the gradients that the processes have for these rows of the result. Therefore `compute`
    may read the result of another `share_rows`.

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
    """Joins the shares of all processes; see `share_rows` for the gradients."""

    @staticmethod
    def forward(ctx: Any, share: Tensor) -> Tensor:
        whole = share.new_empty(world_size() * len(share), *share.shape[1:])
        distributed.all_gather_into_tensor(whole, share.contiguous())
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        share = gradient.new_empty(len(gradient) // world_size(), *gradient.shape[1:])
        distributed.reduce_scatter_tensor(share, gradient.contiguous())
        return share
