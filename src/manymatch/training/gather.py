"""The embeddings of the whole batch: from all its parts, and from all processes.

Contrastive losses need the whole batch, because their negatives are the whole batch. A GPU may hold
the activations of one part of the batch at a time: the embeddings of all parts are computed without
activations, the loss of all embeddings follows, and in the backward pass each part is encoded again
and receives the gradients of its embeddings (Gao et al., Scaling Deep Contrastive Learning Batch
Size under Memory Limited Setup, RepL4NLP 2021).

Each process has the loss of the whole batch, which is equal in all processes; `batch.shared_rows`
shares the work where a pair of samples takes much. In the backward pass a process's embeddings
receive the SUM of the gradients of all processes, which is `world` times the true gradient.
Data-parallel training then averages over processes. The result is the gradient of one process with
the whole batch, for encoders and for the loss's own parameters.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.functional import pad
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from manymatch.batch.batch import Batch
from manymatch.batch.shared_rows import world_size
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.embed import Embedded, joined

_Shapes = list[list[tuple[int, ...]]]
"""The shape of each part, for each process."""


def encoded(method: Method, parts: Sequence[Batch]) -> tuple[Embeddings, Embeddings, Tensor]:
    """The embeddings of a batch's images and captions, and the `image_index` of the captions.

    Several parts are encoded one after another, and again in the backward pass.
    """

    def encode(features: Tensor, part: Batch) -> tuple[Embeddings, Embeddings]:
        part = replace(part, features=features)
        return method.encode_images(part), method.encode_texts(part)

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _kept_statistics(method)

    if len(parts) == 1:
        return *encode(parts[0].features, parts[0]), parts[0].image_index
    embedded = []
    for part in parts:
        images, texts = checkpoint(  # random numbers are drawn again on the device of `features`
            encode, part.features, part, use_reentrant=False, context_fn=contexts
        )
        embedded.append(Embedded(images, texts, part.image_ids, part.caption_ids, part.image_index))
    whole = joined(embedded)
    return whole.images, whole.texts, whole.image_index


@contextmanager
def _kept_statistics(method: nn.Module) -> Iterator[None]:
    """In the block batch norms leave their running statistics: they have seen the part already."""
    norms = [part for part in method.modules() if isinstance(part, _BatchNorm)]
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        count = norm.num_batches_tracked  # its copy counts instead
        norm.momentum, norm.num_batches_tracked = 0.0, None if count is None else count.clone()
    try:
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, count


def gather(
    images: Embeddings, texts: Embeddings, image_index: Tensor, *others: Tensor
) -> tuple[Any, ...]:
    """Embeddings, `image_index (m,)` and any other tensors of all processes, one after another by
    rank.

    Row counts may differ between processes. Row numbers, in `image_index` and in the index parts
    of flat parts, become those of the whole batch.
    """
    if world_size() == 1:
        return images, texts, image_index, *others
    parts = [*others, *images.parts().values(), *texts.parts().values(), image_index]
    shapes = _shapes(parts)
    whole = _Gather.apply(shapes, *parts)
    rows = [[shape[0] for shape in part_shapes] for part_shapes in zip(*shapes, strict=True)]
    first = len(others)
    middle = first + len(images.parts())
    return (
        _joined(images, whole[first:middle], rows[first:middle]),
        _joined(texts, whole[middle:-1], rows[middle:-1]),
        _count_on(whole[-1], rows[-1], rows[first]),
        *whole[:first],
    )


def _joined(local: Embeddings, whole: Sequence[Tensor], rows: Sequence[list[int]]) -> Embeddings:
    """`local` with the parts of all processes. Process r gave `rows[i][r]` rows of part i."""
    parts = dict(zip(local.parts(), whole, strict=True))
    counts = dict(zip(local.parts(), rows, strict=True))
    for name in local.index_parts():
        parts[name] = _count_on(parts[name], counts[name], counts["vectors"])
    return replace(local, **parts)


def _count_on(values: Tensor, rows: list[int], samples: list[int]) -> Tensor:
    """Add to each process's `rows` of `values` the number of samples of the processes before."""
    before = accumulate(samples[:-1], initial=0)
    blocks = zip(values.split(rows), before, strict=True)
    return torch.cat([block + start for block, start in blocks])


def _shapes(parts: Sequence[Tensor]) -> _Shapes:
    """The shapes of all processes, which only their first two sizes tell apart."""
    local = torch.tensor([[*part.shape, 1][:2] for part in parts])
    sizes = [torch.empty_like(local) for _ in range(world_size())]
    world = distributed.group.WORLD
    # An exchange over NCCL would wait for the GPU.
    hosts = world if distributed.get_backend() == "gloo" else _hosts(world)
    distributed.all_gather(sizes, local, group=hosts)
    return [
        [
            (*own, *part.shape[2:])[: part.ndim]
            for own, part in zip(own_sizes.tolist(), parts, strict=True)
        ]
        for own_sizes in sizes
    ]


@lru_cache(maxsize=1)
def _hosts(world: object) -> Any:
    """The gloo group that exchanges the sizes of the processes of `world`, which is made once for a
    training."""
    return distributed.new_group(backend="gloo")


class _Gather(torch.autograd.Function):
    """Gathers all parts in one node of the graph, with one collective in each direction.

    The backward of this node runs before every encoder's. The collectives are then called in the
    same order in every process, before the collectives of data-parallel training.
    """

    @staticmethod
    def forward(ctx: Any, shapes: _Shapes, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.shapes = shapes
        # Wider numbers go first, so that each part begins at a multiple of its numbers' size.
        order = sorted(range(len(parts)), key=lambda n: -parts[n].itemsize)
        own = torch.cat([parts[n].detach().reshape(-1).view(torch.uint8) for n in order])
        sizes = [[math.prod(shape[n]) * parts[n].itemsize for n in order] for shape in shapes]
        longest = -(-max(map(sum, sizes)) // 8) * 8
        packed = own.new_empty(len(shapes) * longest)
        distributed.all_gather_into_tensor(packed, pad(own, (0, longest - len(own))))
        whole: list[Any] = [None] * len(parts)
        blocks = [
            row.split([*lengths, longest - sum(lengths)])
            for row, lengths in zip(packed.split(longest), sizes, strict=True)
        ]
        for block, n in enumerate(order):
            whole[n] = _rows(
                [
                    received[block].view(parts[n].dtype).view(shape[n])
                    for received, shape in zip(blocks, shapes, strict=True)
                ]
            )
        ctx.mark_non_differentiable(*(part for part in whole if not part.is_floating_point()))
        return tuple(whole)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wanted = [n for n, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
        shapes = [[shape[n] for n in wanted] for shape in ctx.shapes]
        lengths = [[math.prod(shape) for shape in own] for own in shapes]
        longest = max(map(sum, lengths))
        blocks, start = [], [0] * len(wanted)
        for own, sizes in zip(shapes, lengths, strict=True):
            for part, (n, shape) in enumerate(zip(wanted, own, strict=True)):
                rows = gradients[n][start[part] : start[part] + shape[0]]
                blocks.append((rows[:, : shape[1]] if rows.ndim > 1 else rows).reshape(-1))
                start[part] += shape[0]
            blocks.append(blocks[-1].new_zeros(longest - sum(sizes)))
        summed = blocks[0].new_empty(longest)
        distributed.reduce_scatter_tensor(summed, torch.cat(blocks))
        rank = distributed.get_rank()
        result: list[Tensor | None] = [None] * len(gradients)
        totals = summed[: sum(lengths[rank])].split(lengths[rank])
        for n, total, shape in zip(wanted, totals, shapes[rank], strict=True):
            result[n] = total.view(shape)
        return None, *result


def _rows(blocks: Sequence[Tensor]) -> Tensor:
    """The rows of all blocks, whose second size is padded with zeros to the largest."""
    if blocks[0].ndim == 1:
        return torch.cat(list(blocks))
    width = max(block.shape[1] for block in blocks)
    behind = (0, 0) * (blocks[0].ndim - 2)
    return torch.cat([pad(block, (*behind, 0, width - block.shape[1])) for block in blocks])
