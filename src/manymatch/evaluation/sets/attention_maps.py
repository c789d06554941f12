"""Where the elements of sampled images look, and which words those of sampled captions read."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from manymatch.shards.numbering import Numbering
from manymatch.shards.sample import CaptionEntry, Sample
from manymatch.text.wordpieces import AnyVocabulary, WordPieces

_DIGITS = 4


def image_maps(
    images: Sequence[Sample], attention: Tensor, passes: Tensor | None = None
) -> list[dict[str, Any]]:
    """Each image's regions and the weight that each element gives them.

    Images of which nothing says at what place their regions lie are left out.

    Args:
        images: as the shards hold them.
        attention: `(n, K, R)`; what lies beyond an image's own regions is padding.
        passes: `(T, n, K, R)`, the maps of every pass, where a set is refined in passes.
    """
    each: Iterable[Iterable[Tensor]] = (
        [()] * len(images) if passes is None else passes.cpu().transpose(0, 1)
    )
    return [
        {
            "image_id": stored.image_id,
            "size": _size(stored.thumbnail),
            "weights": _rounded(weights[:, : len(stored.boxes)]),
            "passes": [_rounded(maps[:, : len(stored.boxes)]) for maps in own_passes],
            **_places(stored.boxes),
        }
        for stored, weights, own_passes in zip(images, attention.cpu(), each, strict=True)
        if stored.boxes is not None
    ]


def _size(thumbnail: bytes | None) -> tuple[int, int]:
    """Width and height of a picture; a square's if there is none."""
    if thumbnail is None:
        return 1, 1
    with Image.open(io.BytesIO(thumbnail)) as image:
        return image.size


def _places(boxes: np.ndarray) -> dict[str, Any]:
    """`grid`: the side of a grid of equal cells, row by row; else the `boxes` themselves."""
    side = math.isqrt(len(boxes))
    if side * side == len(boxes):
        y, x = np.divmod(np.arange(side * side), side)
        if np.allclose(boxes * side, np.stack([x, y, x + 1, y + 1], 1), atol=1e-3):
            return {"grid": side, "boxes": None}
    return {"grid": None, "boxes": [[round(float(at), 3) for at in box] for box in boxes]}


def caption_maps(
    captions: Sequence[CaptionEntry], attention: Tensor, vocabulary: AnyVocabulary
) -> list[dict[str, Any]]:
    """Each caption's words, as the model sees them, and the weight that each element gives them.

    `attention (n, K, L)`; what lies beyond a caption's own words is padding.
    """
    words = _words([entry.text for entry in captions], vocabulary)
    return [
        {"caption_id": entry.id, "words": own, "weights": _rounded(weights[:, : len(own)])}
        for entry, own, weights in zip(captions, words, attention.cpu(), strict=True)
    ]


def _words(texts: Iterable[str], vocabulary: AnyVocabulary) -> list[list[str]]:
    """The words or wordpieces of each text, in the order of the text encoder's local features."""
    ends = [vocabulary.CLS, vocabulary.SEP] if isinstance(vocabulary, WordPieces) else []
    numbering = Numbering(vocabulary)
    return [
        [vocabulary.words[number] for number in (*ends, *numbering.words(text))] for text in texts
    ]


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(value, _DIGITS) for value in row] for row in weights.tolist()]
