"""The pixels of images, for a CNN that is trained with the rest of the model. No network runs here.

An image is a feature map of S * S cells of width 3: red, green and blue as bytes.
"""

from __future__ import annotations

from manymatch.features.backbone import Backbone, Sources


def build(name: str, sources: Sources) -> Pixels:
    """Return the backbone. `name` ends in the side of the square in pixels."""
    return Pixels(int(name.removeprefix("pixels")))


class Pixels(Backbone):
    """The middle square of an image, resized: its regions are the pixels, row by row.

    An image keeps its proportions. Of what is resized to a shorter side of `size` pixels, the
    middle `size` x `size` pixels are stored.
    """

    def __init__(self, size: int) -> None:
        super().__init__(
            None,
            size=size,
            width=3,
            max_regions=size * size,
            preprocessing=f"RGB, middle square, {size} x {size} bicubic",
        )

    def crops(self, image_id: str) -> None:
        return None

    def boxes(self, image_id: str) -> None:
        return None
