"""The pixels of images, for a CNN that is trained with the rest of the model. No network runs here.

An image is a feature map of S * S cells of width 3: red, green and blue as bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manymatch.features.backbone import WHOLE, Backbone, Sources

_SQUASHED = {512}
"""The sides for which the whole picture is squashed to a square."""


def build(name: str, sources: Sources) -> Pixels:
    """Return the backbone. `name` ends in the side of the square in pixels."""
    return Pixels(int(name.removeprefix("pixels")))


class Pixels(Backbone):
    """A square of an image, resized: its regions are the pixels, row by row.

    A store has what the tests of the papers' released code see. With 256 pixels that is the middle
    square: an image is resized to a shorter side of 256, and keeps its proportions (VSE++, PVSE,
    PCME, DivE). With 512 pixels that is the whole image, squashed (VSE-infinity, DivE, CORA).
    """

    def __init__(self, size: int) -> None:
        self._squashed = size in _SQUASHED
        square = "squashed to" if self._squashed else "middle square,"
        super().__init__(
            None,
            size=size,
            width=3,
            max_regions=size * size,
            preprocessing=f"RGB, {square} {size} x {size} bicubic",
        )

    def crops(self, image_id: str) -> NDArray[np.float32] | None:
        return WHOLE if self._squashed else None

    def boxes(self, image_id: str) -> None:
        return None
