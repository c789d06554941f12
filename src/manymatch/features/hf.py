"""Frozen features of any vision model of transformers: `kind: hf`.

`networks.backbones.vision_model` says which regions a model has.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.features.backbone import WHOLE, Backbone, Sources, grid_boxes
from manymatch.features.image_list import Picture
from manymatch.networks.backbones import vision_model
from manymatch.networks.backbones.hub_model import HubModel, open_model
from manymatch.networks.backbones.picture_recipe import placed, read_recipe
from manymatch.util.errors import ConfigError
from manymatch.util.images import read_image

_MOST_CELLS, _GRID = 100, 7
"""More cells are averaged to a grid of 7 x 7, unless the settings name a grid."""


def build(name: str, sources: Sources) -> "HubBackbone":
    """Return the backbone of the model and the output that `sources.settings` names."""
    if sources.settings.model is None:
        raise ConfigError("features of kind hf: no model. Set 'kind: hf' and 'model'")
    return HubBackbone(open_model(sources.settings.model), sources.settings)


class HubBackbone(Backbone):
    """A model of transformers on the whole picture or its middle square."""

    full_size = True

    def __init__(self, model: HubModel, settings: Extraction) -> None:
        self._recipe = recipe = read_recipe(model.folder, settings.size, settings.geometry)
        with vision_model.model_faults(model.name, recipe):
            vision_model.cut_layers(vision_model.vision_tower(model.network), settings.layer)
            network = vision_model.VisionNetwork(
                model.network, recipe, settings.output, settings.grid, model.missing
            )
            if settings.grid is None and network.side**2 > _MOST_CELLS:
                network.grid = _GRID
            shape = vision_model.probe(network.eval().requires_grad_(False), recipe.side)
        super().__init__(
            network,
            size=recipe.side,
            width=shape[2],
            max_regions=shape[1],
            preprocessing=str(recipe),
            weights_sha256=model.weights_sha256,
        )
        if settings.output == "projected":
            self.dtype = "float32"  # compared with texts as they are (`methods/pretrained.py`)
        self.resample = recipe.resample
        vector = settings.output in ("pooled", "projected")
        self._boxes = WHOLE if vector else grid_boxes(network.grid)
        self.facts = {
            "model": model.name,
            "output": settings.output,
            "layer": str(settings.layer),
            "size": str(recipe.side),
        }
        if not vector:
            self.facts["grid"] = str(network.grid)
        if settings.geometry:
            self.facts["geometry"] = settings.geometry

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        """Return the boxes (k, 4) in the square that the network sees, which `read` places."""
        return self._boxes

    def read(self, image: Picture) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        picture = Image.fromarray(read_image(image.source))
        pixels, square = self._recipe.pixels(picture, image.image_id)
        return pixels[None], placed(self._boxes, square)
