"""Scores of all pairs, and which embeddings a model may score: its own, and arrays from elsewhere,
which have no origin."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from manymatch.evaluation.ranking.blocks import CAPTIONS_PER_BLOCK, IMAGES_PER_BLOCK
from manymatch.methods.embeddings import Embeddings
from manymatch.search.answer import Side
from manymatch.similarities.blocks import runs
from manymatch.system.errors import ConfigError, DataError


def of_all_pairs(
    block: Callable[[Embeddings, Embeddings], Tensor], images: Embeddings, texts: Embeddings
) -> Tensor:
    """`(n_images, n_texts)`, put together of the scores of blocks."""
    text_runs = runs(len(texts), CAPTIONS_PER_BLOCK)
    return torch.cat(
        [
            torch.cat([block(images.rows(i), texts.rows(j)) for j in text_runs], 1)
            for i in runs(len(images), IMAGES_PER_BLOCK)
        ]
    )


def check_origin(embeddings: Embeddings, model: str, side: Side | None = None) -> None:
    """Refuse embeddings of another model than `model`, or of another side than `side`.

    Args:
        model: `Model.identity`.

    Raises:
        DataError: these are no embeddings, or those of another model or side. Embeddings without
            an origin pass.
    """
    if not isinstance(embeddings, Embeddings):
        raise DataError(
            f"expected embeddings, not {type(embeddings).__name__}. Give what encode_images or "
            "encode_texts returns, or Embeddings(vectors) with vectors (n, K, D)"
        )
    if embeddings.origin is None:
        return
    of_side, of_model = embeddings.origin
    if side is not None and of_side != side:
        raise DataError(f"embeddings of {of_side} where those of {side} belong. Swap them")
    if of_model != model:
        raise DataError("embeddings of another model. Embed the items with this model")


def check_pair(images: Embeddings, texts: Embeddings, model: str) -> None:
    """Refuse embeddings that have no score by `model`: those of another model or of the other side,
    or of different sizes. Each is a `DataError`."""
    check_origin(images, model, "images")
    check_origin(texts, model, "texts")
    for name, vectors in (("images", images.vectors), ("texts", texts.vectors)):
        if vectors.ndim != 3:
            raise DataError(f"{name}: vectors {tuple(vectors.shape)}, but expected (n, K, D)")
    sizes = images.vectors.shape[2], texts.vectors.shape[2]
    if sizes[0] != sizes[1]:
        raise DataError(
            f"images of {sizes[0]} numbers and texts of {sizes[1]}: embeddings of different models "
            "have no score"
        )


def check_asking(query: str) -> None:
    """Refuse an unknown side that asks: a `ConfigError`."""
    if query not in ("text", "image"):
        raise ConfigError(f"query = {query!r}: the side that asks is 'text' or 'image'.")
