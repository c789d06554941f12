"""Embed a whole split."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import Precision
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.networks.device import tf32
from manymatch.util.errors import DataError, DivergenceError


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

    @property
    def gallery(self) -> tuple[Embeddings, Embeddings, Tensor]:
        """Images, captions and `image_index`, as `rank` takes them."""
        return self.images, self.texts, self.image_index


def embed(method: Method, batches: Iterable[Batch], device: torch.device | str) -> Embedded:
    """Embed all `batches` with `method`, which is on `device` already.

    The embeddings stay on `device`, in float32.

    Raises:
        DataError: there are no batches, or an embedding is not finite.
    """
    device = torch.device(device)
    with inference(method, device):
        return joined([_embed(method, batch, device) for batch in batches])


@contextmanager
def inference(method: Method, device: torch.device) -> Iterator[None]:
    """In the block `method` runs in evaluation mode, without gradients, in the precision of its
    preset, or in float32 if nothing of the method learns. Products that stay in float32, such as
    scores, are exact. Afterwards the method is in its former mode again."""
    was_training = method.training
    method.eval()
    try:
        asked = method.precision if method.learns else "32-true"
        precision = precision_on(device.type, asked)
        half = torch.float16 if precision == "16-mixed" else torch.bfloat16
        autocast = torch.autocast(device.type, half, enabled=precision != "32-true")
        with torch.inference_mode(), autocast, tf32(False):
            yield
    finally:
        method.train(was_training)


def _embed(method: Method, batch: Batch, device: torch.device) -> Embedded:
    moved = batch.to(device)
    images, texts = method.encode_images(moved), method.encode_texts(moved)
    for embeddings, ids in ((images, batch.image_ids), (texts, batch.caption_ids)):
        check_finite(embeddings.vectors, ids)
    return Embedded(images, texts, batch.image_ids, batch.caption_ids, batch.image_index.cpu())


def precision_on(device: str, asked: Precision) -> Precision:
    """The precision `asked` for by a preset, on a device of the type `device`.

    "auto" is bf16-mixed on a GPU with bfloat16, 16-mixed on other GPUs, and 32-true on the CPU. The
    CPU has no 16-mixed: bf16-mixed takes its place.
    """
    if device != "cuda":
        return "bf16-mixed" if asked.endswith("mixed") else "32-true"
    if asked == "auto":
        return "bf16-mixed" if torch.cuda.is_bf16_supported(False) else "16-mixed"
    return asked


def check_finite(vectors: Tensor, ids: Sequence[str]) -> None:
    """Refuse vectors `(n, K, D)` that are not finite: a `DataError` names the first one's id."""
    finite = torch.isfinite(vectors).flatten(1).all(1)
    if not bool(finite.all()):
        first = ids[int((~finite).nonzero()[0])]
        raise DivergenceError(
            f"the model's embedding of '{first}' is not finite: the features hold NaN, or "
            "training diverged. Check the features, or train with a lower learning rate."
        )


def joined(parts: Sequence[Embedded]) -> Embedded:
    """The images and captions of all `parts`, in float32."""
    if not parts:
        raise DataError("the split has no images. Write the shards again.")
    indices, images = [], 0
    for part in parts:
        indices.append(part.image_index + images)
        images += len(part.images)
    return Embedded(
        images=Embeddings.join([part.images for part in parts]),
        texts=Embeddings.join([part.texts for part in parts]),
        image_ids=[name for part in parts for name in part.image_ids],
        caption_ids=[name for part in parts for name in part.caption_ids],
        image_index=torch.cat(indices),
    )
