"""Scores of all pairs, and which embeddings a model may score: its own, and arrays from elsewhere,
which have no origin."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.methods.shared.method import Method
from manymatch.model.answer import Side
from manymatch.model.blocks import CAPTIONS_PER_BLOCK, IMAGES_PER_BLOCK
from manymatch.model.embed import check_finite
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError, DataError


def score_all_pairs(
    block: Callable[[Embeddings, Embeddings], Tensor], images: Embeddings, texts: Embeddings
) -> Tensor:
    """The scores `(n_images, n_texts)`, computed in blocks.

    Scores are float64 if both sides are float64, and float32 otherwise.

    Raises:
        DataError: a score is not finite, because arrays from elsewhere have too large numbers.
    """
    if {images.vectors.dtype, texts.vectors.dtype} != {torch.float64}:
        images, texts = images.float(), texts.float()
    text_runs = runs(len(texts), CAPTIONS_PER_BLOCK)
    scores = torch.cat(
        [
            torch.cat([block(images.rows(i), texts.rows(j)) for j in text_runs], 1)
            for i in runs(len(images), IMAGES_PER_BLOCK)
        ]
    )
    if not bool(scores.isfinite().all()):
        raise DataError("a score is not finite: the numbers of the embeddings are too large")
    return scores


def check_origin(embeddings: Embeddings, model: str, side: Side | None = None) -> None:
    """Refuse what are no `Embeddings`, and embeddings of another `Model.identity` than `model` or
    of another side than `side`, by a `DataError`. Embeddings without an origin are accepted."""
    if not isinstance(embeddings, Embeddings):
        raise DataError(
            f"expected embeddings, not {type(embeddings).__name__}. Give what encode_images or "
            "encode_texts returns, or Embeddings(vectors) with vectors (n, K, D)"
        )
    origin: object = embeddings.origin
    if origin is None:
        return
    if not isinstance(origin, tuple) or len(origin) != 2:
        raise DataError(f"the origin {origin!r:.60} is not valid. Use the embeddings unchanged")
    own_side, own_model = origin
    if side is not None and own_side != side:
        raise DataError(f"embeddings of {own_side} where those of {side} belong. Swap them")
    if own_model != model:
        raise DataError("embeddings of another model. Embed the items with this model")


def check_pair(images: Embeddings, texts: Embeddings, method: Method, model: str) -> None:
    """Refuse embeddings that `model`, which has the `method`, cannot score: a `DataError` for
    embeddings of another model or of the other side, of different sizes, or with numbers that are
    not finite."""
    sides: tuple[tuple[Side, Embeddings], ...] = ("images", images), ("texts", texts)
    for side, embeddings in sides:
        check_origin(embeddings, model, side)
        _check_numbers(side, embeddings)
        check_elements(method, embeddings)
    sizes = images.vectors.shape[2], texts.vectors.shape[2]
    if sizes[0] != sizes[1]:
        raise DataError(
            f"images of {sizes[0]} numbers and texts of {sizes[1]}: embeddings of different models "
            "have no score"
        )


def check_elements(method: Method, embeddings: Embeddings) -> None:
    """Raise a `DataError` for several vectors of an item if the method gives one vector."""
    elements = embeddings.vectors.shape[1]
    if not method.embeds_sets and elements != 1:
        raise DataError(f"{elements} vectors of each item: the method gives one vector")


def _check_numbers(name: str, embeddings: Embeddings) -> None:
    vectors: object = embeddings.vectors
    if not isinstance(vectors, Tensor):
        raise DataError(
            f"{name}: vectors in a {type(vectors).__name__}, but expected a tensor (n, K, D). Use "
            "torch.as_tensor"
        )
    if vectors.ndim != 3 or not vectors.is_floating_point():
        shape = tuple(vectors.shape)
        raise DataError(f"{name}: vectors {shape} {vectors.dtype}, but expected float (n, K, D)")
    if vectors.layout is not torch.strided or vectors.is_meta:
        raise DataError(f"{name}: vectors without numbers in memory. Give a dense tensor")
    if not vectors.numel():
        raise DataError(f"{name}: vectors {tuple(vectors.shape)} are empty")
    parts: dict[str, Any] = embeddings.parts()
    for key, part in parts.items():
        of = Embeddings.__dataclass_fields__[key].metadata.get("index", "vectors")
        rows: Any = parts.get(of)
        tensors = isinstance(part, Tensor) and isinstance(rows, Tensor)
        if not tensors or part.shape[:1] != rows.shape[:1] or rows.ndim not in (1, 3):
            raise DataError(f"{name}: {key}: expected a tensor with as many rows as {of}")
    mask: Any = parts.get("mask")
    if mask is not None and not (
        mask.dtype == torch.bool and mask.shape == vectors.shape[:2] and bool(mask.any(1).all())
    ):
        raise DataError(
            f"{name}: mask: expected bool {tuple(vectors.shape[:2])} with a True for each item, "
            f"but found {mask.dtype} {tuple(mask.shape)}"
        )
    for part in embeddings.scored_parts().values():
        if part.is_floating_point():
            check_finite(part, [f"{name} {number}" for number in range(len(part))])


def numbers_of(values: ArrayLike, name: str) -> NDArray[Any]:
    """The `values` as an array. A `DataError` contains `name` if the values are not numbers."""
    try:
        numbers = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # lists of unequal length, tensors in training
        numbers = np.asarray(None)
    if numbers.dtype.kind not in "fiu":
        raise DataError(f"{name}: expected an array of numbers, not {type(values).__name__}")
    return numbers


def check_asking(query: object) -> None:
    """Raise a `ConfigError` for an unknown side of the query."""
    if not isinstance(query, str) or query not in ("text", "image"):
        raise ConfigError(f"query = {query!r}: expected 'text' or 'image', the side of the query.")
