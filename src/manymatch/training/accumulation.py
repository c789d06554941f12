"""A batch in parts, so that a GPU holds the activations of one part at a time.

The embeddings of all parts are computed without activations, the loss of all embeddings follows,
and in the backward pass each part is encoded again and receives the gradients of its embeddings.
Contrastive losses need this order: their negatives are the whole batch.

References:
    Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, RepL4NLP
    2021 (gradient cache).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from manymatch.batch.batch import Batch
from manymatch.methods.base import Embeddings, Method
from manymatch.model.embed import Embedded, joined


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
        count = norm.num_batches_tracked  # its copy counts instead: `SyncBatchNorm` needs a number
        norm.momentum, norm.num_batches_tracked = 0.0, None if count is None else count.clone()
    try:
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, count
