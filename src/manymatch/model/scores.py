"""Scores of all pairs, in blocks, or in whole rows for metrics that sort or count all items; and
which embeddings a model may score: its own, and arrays from elsewhere, which have no origin."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.answer import Side
from manymatch.model.embed import check_finite
from manymatch.similarities.blocks import runs
from manymatch.util.errors import ConfigError, DataError, DivergenceError

Score = Callable[[Embeddings, Embeddings], Tensor]
"""`(images, texts) -> (n_images, n_texts)`: `Method.score`, or a function with its arguments."""

IMAGES_PER_BLOCK, CAPTIONS_PER_BLOCK = 1024, 5120
"""The scores of one block take 20 MiB: large enough that their ranking costs little beside their
computation."""


def blocks_by_image(image_index: Tensor, n_images: int) -> "list[Block]":
    """Runs of at most `IMAGES_PER_BLOCK` images with their captions.

    A run has at most `CAPTIONS_PER_BLOCK` captions, unless a single image has more. `image_index
    (m,)` is the row of each caption's image, ascending.

    Raises:
        DataError: an image has no caption, or the captions are not in the order of the images.
    """
    ends = _caption_ends(image_index, n_images)
    blocks, start, first = [], 0, 0
    for row in range(1, n_images + 1):
        if (
            row == n_images
            or row - start == IMAGES_PER_BLOCK
            or ends[row] - first > CAPTIONS_PER_BLOCK
        ):
            blocks.append((slice(start, row), slice(first, ends[row - 1])))
            start, first = row, ends[row - 1]
    return blocks


Block = tuple[slice, slice]
"""A run of images and the run of their captions."""


def _caption_ends(image_index: Tensor, n_images: int) -> list[int]:
    counts = torch.bincount(image_index, minlength=n_images)
    if len(counts) > n_images or bool((image_index.diff() < 0).any()):
        raise DataError("captions are not in the order of their images. Write the shards again.")
    if not bool(counts.all()):
        row = int((counts == 0).nonzero()[0])
        raise DataError(f"image {row} of the split has no caption. Write the shards again.")
    return counts.cumsum(0).tolist()


def holding(best: Tensor, scores: Tensor) -> Tensor:
    """`best` in a type that holds its values and those of `scores` exactly.

    Rounding would break ties and create new ties.
    """
    return best.to(torch.promote_types(best.dtype, scores.dtype))


def checked(scores: Tensor) -> Tensor:
    """Return `scores`; a score that is not finite is a `DataError`, because it has no rank."""
    low, high = torch.aminmax(scores)
    if not bool(torch.isfinite(low) & torch.isfinite(high)):
        raise DivergenceError(
            "the model's scores are not finite: training diverged, or the features hold NaN. "
            "Train the model again with a lower learning rate, or check the features."
        )
    return scores


SCORES_AT_ONCE = 4_000_000
"""Scores in memory at once: 16 MB, and several times as much while they are sorted."""


def whole_rows(
    score: Score,
    queries: Embeddings,
    gallery: Embeddings,
    included: Tensor | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield runs of queries: their rows `(q,)` on the CPU, and their scores `(q, gallery)`.

    Args:
        score: `(queries, gallery) -> (q, g)`.
        included: `(queries,)` mask of the queries that count (None: all).

    Raises:
        DataError: a score is not finite.
    """
    if included is None:
        included = torch.ones(len(queries), dtype=torch.bool)
    included = included.cpu()
    for run in runs(len(queries), SCORES_AT_ONCE // max(1, len(gallery))):
        offsets = included[run].nonzero()[:, 0]
        if len(offsets):
            scores = _scores(score, queries.rows(run), gallery)
            yield run.start + offsets, scores[offsets.to(scores.device)]


def _scores(score: Score, queries: Embeddings, gallery: Embeddings) -> Tensor:
    with torch.inference_mode():
        parts = [
            score(queries, gallery.rows(run)) for run in runs(len(gallery), CAPTIONS_PER_BLOCK)
        ]
        return checked(torch.cat(parts, 1))


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
