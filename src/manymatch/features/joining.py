"""Features of images from the stores of parts, in the form that an extractor gives them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymatch.features.image_list import Picture
from manymatch.features.store import FeatureStore

Extracted = tuple[Picture, NDArray[Any], NDArray[np.float32] | None]
"""An image, its features (k, F) in float32, float16 or (for pixels) uint8, and its boxes (k, 4)."""


def stored(paths: Sequence[Path], images: Iterable[Picture]) -> Iterator[Extracted]:
    """Every image with its features and boxes, in the given order, from the stores `paths`.

    Each image is in exactly one of the stores. One image is in memory at a time.
    """
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(FeatureStore(path)) for path in paths]
        rows = {name: (store, row) for store in stores for row, name in enumerate(store.image_ids)}
        for image in images:
            store, row = rows[image.image_id]
            features, counts, boxes = store.read([row])
            count = int(counts[0])
            yield image, features[0, :count], None if boxes is None else boxes[0, :count]
