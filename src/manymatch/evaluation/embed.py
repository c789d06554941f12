"""Embed a whole split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from manymatch.methods.base import Embeddings, Method
from manymatch.shards.batch import Batch
from manymatch.system.errors import DataError


@dataclass(frozen=True)
class Embedded:
    """n images and their m captions.

    `image_index (m,)`, on the CPU, is the row of each caption's image.
    """

    images: Embeddings
    texts: Embeddings
    image_ids: list[str]
    caption_ids: list[str]
    image_index: Tensor


def embed(method: Method, batches: Iterable[Batch], device: torch.device | str) -> Embedded:
    """Embed all `batches` with `method`, which is on `device` already.

    The embeddings stay on `device`, in float32.

    Raises:
        DataError: there are no batches, or an embedding is not finite.
    """
    device = torch.device(device)
    with inference(method, device):
        return _join([_embed(method, batch, device) for batch in batches])


@contextmanager
def inference(method: Method, device: torch.device) -> Iterator[None]:
    """In the block `method` runs in evaluation mode, without gradients, and on a GPU under
    autocast. Afterwards the method is in its former mode again."""
    was_training = method.training
    method.eval()
    try:
        autocast = torch.autocast(
            device.type, autocast_dtype(device), enabled=device.type == "cuda"
        )
        with torch.inference_mode(), autocast:
            yield
    finally:
        method.train(was_training)


def _embed(method: Method, batch: Batch, device: torch.device) -> Embedded:
    moved = batch.to(device)
    images, texts = method.encode_images(moved), method.encode_texts(moved)
    for embeddings, ids in ((images, batch.image_ids), (texts, batch.caption_ids)):
        _check_finite(embeddings.vectors, ids)
    return Embedded(images, texts, batch.image_ids, batch.caption_ids, batch.owner.cpu())


def autocast_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 if the device supports bfloat16, else float16."""
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.bfloat16


def _check_finite(vectors: Tensor, ids: Sequence[str]) -> None:
    finite = torch.isfinite(vectors).flatten(1).all(1)
    if not bool(finite.all()):
        first = ids[int((~finite).nonzero()[0])]
        raise DataError(
            f"the model's embedding of '{first}' is not finite: the features hold NaN, or "
            "training diverged. Check the features, or train with a lower learning rate."
        )


def _join(parts: Sequence[Embedded]) -> Embedded:
    if not parts:
        raise DataError("the split has no images. Write the shards again.")
    indices, images = [], 0
    for part in parts:
        indices.append(part.image_index + images)
        images += len(part.images)
    return Embedded(
        images=concatenate([part.images for part in parts]),
        texts=concatenate([part.texts for part in parts]),
        image_ids=[name for part in parts for name in part.image_ids],
        caption_ids=[name for part in parts for name in part.caption_ids],
        image_index=torch.cat(indices),
    )


def concatenate(parts: Sequence[Embeddings]) -> Embeddings:
    """The samples of all `parts`, one after another, in float32.

    Sets of unequal size, and attention over unequally many inputs, are padded to the largest;
    `entity_owner` counts on through the parts.
    """
    columns = {name: [part.parts()[name] for part in parts] for name in parts[0].parts()}
    if "entity_owner" in columns:
        columns["entity_owner"] = _counted_on(columns["entity_owner"], parts)
    return Embeddings(**{name: _padded(values) for name, values in columns.items()})


def _counted_on(indices: Sequence[Tensor], parts: Sequence[Embeddings]) -> list[Tensor]:
    counted, before = [], 0
    for image_index, part in zip(indices, parts, strict=True):
        counted.append(image_index + before)
        before += len(part)
    return counted


def _padded(values: Sequence[Tensor]) -> Tensor:
    """All rows; of every other dimension the largest size, with zeros behind what is smaller."""
    widest = [max(sizes) for sizes in zip(*(value.shape[1:] for value in values), strict=True)]
    joined = torch.cat([_widened(value, widest) for value in values])
    return joined.float() if joined.is_floating_point() else joined


def _widened(value: Tensor, sizes: Sequence[int]) -> Tensor:
    missing = [size - own for size, own in zip(sizes, value.shape[1:], strict=True)]
    if not any(missing):
        return value
    return pad(value, [part for size in reversed(missing) for part in (0, size)])
