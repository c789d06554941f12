"""Negatives from all processes: every process gets the embeddings of the whole batch.

Each process computes the loss of the whole batch, which is equal in all processes. In the backward
pass a process's embeddings receive the SUM of the gradients of all processes, which is `world`
times the true gradient. Data-parallel training then averages over processes. The result is the
gradient of one process with the whole batch, for encoders and for the loss's own parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.functional import pad

from manymatch.methods.base import Embeddings


def world_size() -> int:
    """The number of processes that train together."""
    initialised = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if initialised else 1


def gather(
    images: Embeddings, texts: Embeddings, image_index: Tensor
) -> tuple[Embeddings, Embeddings, Tensor]:
    """Embeddings and `image_index (m,)` of all processes, one after another by rank.

    Row counts may differ between processes. Row numbers, in `image_index` and in the index parts
    of flat parts, become those of the whole batch.
    """
    if world_size() == 1:
        return images, texts, image_index
    parts = [*images.parts().values(), *texts.parts().values(), image_index]
    shapes = _shapes(parts)
    whole, rows = _Gather.apply(shapes, *parts), shapes[:, :, 0].T
    count = len(images.parts())
    return (
        _joined(images, whole[:count], rows[:count]),
        _joined(texts, whole[count:-1], rows[count:-1]),
        _count_on(whole[-1], rows[-1], rows[0]),
    )


def _joined(local: Embeddings, whole: Sequence[Tensor], rows: Tensor) -> Embeddings:
    """`local` with the `whole` parts of all processes, which have `rows (parts, world)` each."""
    parts, counts = (dict(zip(local.parts(), values, strict=True)) for values in (whole, rows))
    for name in local.index_parts():
        parts[name] = _count_on(parts[name], counts[name], counts["vectors"])
    return replace(local, **parts)


def _count_on(values: Tensor, rows: Tensor, samples: Tensor) -> Tensor:
    """Add to each process's `rows` of `values` the number of samples of the processes before."""
    before = (samples.cumsum(0) - samples).to(values.device)
    return values + before.repeat_interleave(rows.to(values.device))


def _shapes(parts: list[Tensor]) -> Tensor:
    """`(world, parts, 2)`: the first two sizes of each part in each process, on the CPU."""
    device = parts[0].device
    local = torch.tensor([[*part.shape, 1][:2] for part in parts], device=device)
    all_sizes = [torch.empty_like(local) for _ in range(world_size())]
    distributed.all_gather(all_sizes, local)
    return torch.stack(all_sizes).cpu()


class _Gather(torch.autograd.Function):
    """Gathers all parts in one node of the graph.

    The backward of this node runs before every encoder's. The collectives are then called in the
    same order in every process, before the collectives of data-parallel training.
    """

    @staticmethod
    def forward(ctx: Any, shapes: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.shapes = shapes
        whole = tuple(_rows(part, shapes[:, n]) for n, part in enumerate(parts))
        ctx.mark_non_differentiable(*(part for part in whole if not part.is_floating_point()))
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needed = zip(gradients, ctx.needs_input_grad[1:], strict=True)
        return None, *(
            _own_gradient(gradient, ctx.shapes[:, n]) if wanted else None
            for n, (gradient, wanted) in enumerate(needed)
        )


def _rows(part: Tensor, shapes: Tensor) -> Tensor:
    """The rows of all processes; `shapes (world, 2)` are their first two sizes."""
    rows, width = shapes.amax(0).tolist()
    blocks = [part.new_empty(_padded(part, rows, width).shape) for _ in shapes]
    distributed.all_gather(blocks, _padded(part.detach(), rows, width).contiguous())
    return torch.cat([block[:count] for block, count in zip(blocks, shapes[:, 0], strict=True)])


def _padded(part: Tensor, rows: int, width: int) -> Tensor:
    """`part` padded with zeros to `rows` rows and, if it has columns, to `width` columns."""
    part = pad(part, (0, 0) * (part.ndim - 1) + (0, rows - part.shape[0]))
    if part.ndim > 1:
        part = pad(part, (0, 0) * (part.ndim - 2) + (0, width - part.shape[1]))
    return part


def _own_gradient(gradient: Tensor, shapes: Tensor) -> Tensor:
    """This process's rows of the gradient summed over all processes."""
    gradient = gradient.contiguous()
    distributed.all_reduce(gradient)
    rank = distributed.get_rank()
    start = int(shapes[:rank, 0].sum())
    rows, width = shapes[rank].tolist()
    local = gradient[start : start + rows]
    return local[:, :width] if local.ndim > 1 else local
