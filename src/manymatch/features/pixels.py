"""The images themselves, for a CNN that is trained with the rest: no network runs here.

A picture is a feature map like any other: S * S cells of width 3, red, green and blue as bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manymatch.features.backbone import WHOLE, Backbone, Sources


def build(name: str, sources: Sources) -> Pixels:
    """`name` ends in the side of the square in pixels; `sources` are not needed."""
    return Pixels(int(name.removeprefix("pixels")))


class Pixels(Backbone):
    """The whole image, squashed to a square; its regions are the pixels, row by row."""

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
