"""Attention maps: the regions that elements of an image look at, the words that elements of a
caption read."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import Image
from torch import Tensor

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.model.explanation import words_read
from manymatch.results.sets import CaptionMap, ImageMap
from manymatch.shards.sample import Sample

_DIGITS = 4


def image_maps(
    images: Sequence[Sample], attention: Tensor, passes: Tensor | None = None
) -> list[ImageMap]:
    """The weight that each element gives to each region of the image.

    Images without known positions of their regions are left out.

    Args:
        images: as the shards hold them.
        attention: `(n, K, R)`; regions beyond those of an image are padding.
        passes: `(T, n, K, R)`, the maps of all passes, if the method refines sets in passes.
    """
    passes_by_image: Iterable[Iterable[Tensor]] = (
        [()] * len(images) if passes is None else passes.cpu().transpose(0, 1)
    )
    return [
        _image_map(image, image.boxes, weights, image_passes)
        for image, weights, image_passes in zip(
            images, attention.cpu(), passes_by_image, strict=True
        )
        if image.boxes is not None
    ]


def _image_map(
    image: Sample, boxes: np.ndarray, weights: Tensor, passes: Iterable[Tensor]
) -> ImageMap:
    count, side = len(boxes), _grid_side(boxes)
    return ImageMap(
        image_id=image.image_id,
        size=_size(image.thumbnail),
        weights=_rounded(weights[:, :count]),
        passes=[_rounded(maps[:, :count]) for maps in passes],
        grid=side,
        boxes=None if side else [tuple(round(edge, 3) for edge in box) for box in boxes.tolist()],
    )


def _size(thumbnail: bytes | None) -> tuple[int, int]:
    """Width and height of the thumbnail; (1, 1) without a thumbnail."""
    if thumbnail is None:
        return 1, 1
    with Image.open(io.BytesIO(thumbnail)) as image:
        return image.size


def _grid_side(boxes: np.ndarray) -> int | None:
    """The side of the square grid whose cells, row by row, are the boxes; None: not a grid."""
    side = math.isqrt(len(boxes))
    if side * side != len(boxes):
        return None
    y, x = np.divmod(np.arange(side * side), side)
    cells = np.stack([x, y, x + 1, y + 1], 1)
    return side if np.allclose(boxes * side, cells, atol=1e-3) else None


def caption_maps(
    captions: Sequence[CaptionEntry], attention: Tensor, vocabulary: AnyVocabulary
) -> list[CaptionMap]:
    """The weight that each element gives to each word, with the words as the model sees them.

    `attention (n, K, L)`; words beyond those of a caption are padding.
    """
    texts = words_read([entry.text for entry in captions], vocabulary)
    return [
        CaptionMap(caption_id=entry.id, words=words, weights=_rounded(weights[:, : len(words)]))
        for entry, words, weights in zip(captions, texts, attention.cpu(), strict=True)
    ]


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(value, _DIGITS) for value in row] for row in weights.tolist()]
