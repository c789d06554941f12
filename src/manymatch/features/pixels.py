"""The pixels of images, for a network that is trained with the rest of the model. No network runs
here.

An image is a feature map of S * S cells of width 3: red, green and blue as bytes.
"""

import json

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from manymatch.features.backbone import WHOLE, Backbone, Sources, grid_boxes
from manymatch.features.image_list import Picture
from manymatch.networks.backbones.hub_model import model_folder
from manymatch.networks.backbones.picture_recipe import Recipe, placed, read_recipe
from manymatch.util.errors import ConfigError
from manymatch.util.images import read_image

_SQUASHED = {512}
"""The sides for which the whole picture is squashed to a square."""


def build(name: str, sources: Sources) -> "Pixels | ModelPixels":
    """Return the backbone. `name` ends in the side of the square in pixels, or is `pixels` for
    those of the model that `sources.settings` name."""
    settings = sources.settings
    if name == "pixels":
        if settings.model is None:
            raise ConfigError("features of kind pixels: no model. Set 'kind: pixels' and 'model'")
        folder, _ = model_folder(settings.model)
        return ModelPixels(read_recipe(folder, settings.size, settings.geometry))
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


class ModelPixels(Backbone):
    """What a vision model of transformers sees of an image, by the model's own recipe."""

    full_size = True

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        super().__init__(
            None,
            size=recipe.side,
            width=3,
            max_regions=recipe.side**2,
            preprocessing=str(recipe),
        )
        self.facts = {"recipe": json.dumps(recipe.description())}

    def read(self, image: Picture) -> tuple[NDArray[np.uint8], None]:
        return self._seen(image)[0][None], None

    def cells(self, image: Picture, grid: int) -> NDArray[np.float32]:
        """The boxes (grid * grid, 4) of the cells of a network that reads the pixels."""
        return placed(grid_boxes(grid), self._seen(image)[1])

    def _seen(self, image: Picture) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        return self._recipe.pixels(Image.fromarray(read_image(image.source)), image.image_id)
