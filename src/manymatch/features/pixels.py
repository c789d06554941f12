"""The pixels of images, for a CNN that is trained with the rest of the model. No network runs here.

An image is a feature map of S * S cells of width 3: red, green and blue as bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manymatch.features.backbone import WHOLE, Backbone, Sources


def build(name: str, sources: Sources) -> Pixels:
    """Return the backbone. `name` ends in the side of the square in pixels."""
    return Pixels(int(name.removeprefix("pixels")))


class Pixels(Backbone):
    """The whole image, resized to a square. Its regions are the pixels, row by row."""

    def __init__(self, size: int) -> None:
        super().__init__(
            None,
            size=size,
            width=3,
            max_regions=size * size,
            preprocessing=f"RGB, squashed to {size} x {size} bicubic",
        )

    def crops(self, image_id: str) -> NDArray[np.float32]:
        return WHOLE

    def boxes(self, image_id: str) -> None:
        return None
