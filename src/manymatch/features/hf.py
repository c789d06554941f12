"""Frozen features of any vision model of transformers: `kind: hf`.

What a model gives is taken from its outputs instead of a list of families. The regions of a
transformer are its last tokens without the tokens before the patches; those of a convolutional
network are the cells of its last map. A probe at the opening refuses a model whose features are
random or depend on the other pictures of a batch.
"""

from __future__ import annotations

import inspect
from math import isqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from manymatch.config.params import Extraction
from manymatch.features.backbone import WHOLE, Backbone, Sources, grid_boxes
from manymatch.features.image_list import Picture
from manymatch.features.picture_recipe import Recipe, Scaling, read_recipe
from manymatch.networks.backbones.hub_model import HubModel, open_model
from manymatch.util.errors import ConfigError, first_line
from manymatch.util.images import read_image

_MOST_CELLS, _GRID = 100, 7
"""More cells are averaged to a grid of 7 x 7, unless the settings name a grid."""
_MOST_PREFIX = 64
"""The most tokens before the patches: of the picture, of a distillation, registers."""
_TOLERANCE = 1e-3
"""The most that a picture's features alone and in a batch may differ, relative to the largest."""


def build(name: str, sources: Sources) -> HubBackbone:
    """Return the backbone of the model and the output that `sources.settings` names."""
    if sources.settings is None or sources.settings.model is None:
        raise ConfigError("features of kind hf: no model. Set 'kind: hf' and 'model'")
    return HubBackbone(open_model(sources.settings.model), sources.settings)


class HubBackbone(Backbone):
    """A model of transformers on the whole picture or its middle square."""

    full_size = True

    def __init__(self, model: HubModel, settings: Extraction) -> None:
        """`settings`: output, grid, layer, size and geometry of the features.

        Raises:
            ConfigError: the model has no such output, or the probe refuses the model.
        """
        self._recipe = recipe = read_recipe(model.folder, settings.size, settings.geometry)
        try:
            network = HubNetwork(model, recipe, settings).eval().requires_grad_(False)
            shape = _probe(network, recipe.side)
        except ConfigError as error:
            raise ConfigError(f"{model.name}: {error}") from None
        except Exception as error:  # the code of hundreds of models, on sizes of the user
            raise ConfigError(
                f"{model.name}: no features of {recipe.side} x {recipe.side} pixels "
                f"({first_line(error)}). Set another size, or name another model"
            ) from None
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

    def crops(self, image_id: str) -> NDArray[np.float32]:
        return WHOLE

    def boxes(self, image_id: str) -> NDArray[np.float32]:
        """Return the boxes (k, 4) in the square that the network sees, which `read` places."""
        return self._boxes

    def read(self, image: Picture) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        pixels, (x1, y1, x2, y2) = self._recipe.pixels(
            Image.fromarray(read_image(image.source)), image.image_id
        )
        scale = np.array([x2 - x1, y2 - y1] * 2, np.float32)
        return pixels[None], self._boxes * scale + np.array([x1, y1] * 2, np.float32)


class Scaled(nn.Module):
    """A module that scales pixels as a `recipe` says."""

    mean: Tensor
    std: Tensor

    def __init__(self, recipe: Scaling) -> None:
        super().__init__()
        self.factor = recipe.factor
        self.register_buffer("mean", torch.tensor(recipe.mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(recipe.std).view(1, 3, 1, 1))

    def scaled(self, pixels: Tensor) -> Tensor:
        """The input (b, 3, H, W) of the model, bit for bit as transformers computes it."""
        # A product in float64 that is rounded to float32, in which the rest is computed.
        return ((pixels.double() * self.factor).float() - self.mean) / self.std


class HubNetwork(Scaled):
    """Pixels (b, 3, S, S) as bytes -> regions (b, k, F) of a model's `output`.

    Args:
        model: the model, whose layers after `settings.layer` are removed.
        recipe: its side S, and the scaling of pixels.

    Raises:
        ConfigError: the model does not have the output, the layer or the grid.
    """

    def __init__(self, model: HubModel, recipe: Recipe, settings: Extraction) -> None:
        super().__init__(recipe)
        self.output = settings.output
        network: Any = model.network
        tower = getattr(network, "vision_model", network)
        if settings.layer != -1:
            _cut(tower, settings.layer)
        projected = settings.output == "projected"
        if projected and not hasattr(network, "get_image_features"):
            raise ConfigError("the model projects no pictures. Set output: pooled or patches")
        if projected and hasattr(network, "text_model"):
            network.text_model = None
        self.network = network if projected else tower
        run = network.get_image_features if projected else tower.forward
        trained = getattr(tower.config, "image_size", recipe.side)
        sizes = trained if isinstance(trained, list | tuple) else [trained]
        flag = "interpolate_pos_encoding"
        other = {*sizes} != {recipe.side} and flag in inspect.signature(run).parameters
        self._arguments = {flag: True} if other else {}
        self.grid = 1
        if not projected:
            self._learn(recipe.side, settings, model.missing)

    def _learn(self, size: int, settings: Extraction, missing: frozenset[str]) -> None:
        """Find from one output where the cells are."""
        normed: list[bool] = []
        norm = next(
            (m for key, m in self.network.named_modules() if key.endswith("post_layernorm")), None
        )
        hook = norm and norm.register_forward_hook(lambda _, __, out: normed.append(out.ndim == 3))
        try:
            result = self._run(torch.zeros(1, 3, size, size))
        finally:
            if hook:
                hook.remove()
        # CLIP normalises the token of the picture alone.
        self._norm = norm if norm is not None and not any(normed) else None
        hidden, pooled = _last(result), getattr(result, "pooler_output", None)
        self._is_map = hidden.ndim == 4
        if self._is_map:
            height, width = hidden.shape[2:]
            self._prefix = 0
        else:
            patch = getattr(self.network.config, "patch_size", None)
            self._prefix, height = _prefix(hidden.shape[1], patch, size)
            width = height
        pooler = getattr(self.network, "pooler", None)
        # The pooler of a ViT is trained for another task, or not at all.
        self._pools = pooled is not None and not (self._prefix and hasattr(pooler, "dense"))
        if settings.output == "pooled":
            if self._pools and any("pooler" in key for key in missing):
                raise ConfigError("the weights lack the pooler. Set output: patches")
            return
        if (settings.output == "map") != self._is_map:
            raise ConfigError(
                f"output: {settings.output}, but the model gives "
                + ("a map. Set output: map" if self._is_map else "tokens. Set output: patches")
            )
        if height != width:
            raise ConfigError(f"a map of {height} x {width} cells is no square. Set another size")
        self._side = height
        self.grid = settings.grid or (_GRID if height * width > _MOST_CELLS else height)
        if self.grid > height:
            raise ConfigError(f"grid: {self.grid}, but the model has {height} x {width} cells")

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = self.scaled(pixels)
        if self.output == "projected":
            features = self.network.get_image_features(pixel_values=scaled, **self._arguments)
            vectors: Tensor = getattr(features, "pooler_output", features)
            return vectors.unsqueeze(1)
        result = self._run(scaled)
        if self.output == "pooled" and self._pools:
            pooled: Tensor = result.pooler_output
            return pooled.flatten(1).unsqueeze(1)
        hidden = _last(result)
        tokens = hidden.flatten(2).transpose(1, 2) if self._is_map else hidden
        if self._norm is not None:
            tokens = self._norm(tokens)
        if self.output == "pooled" and self._prefix:
            return tokens[:, :1]
        cells = tokens[:, self._prefix :]
        if self.output == "pooled":
            return cells.mean(dim=1, keepdim=True)
        if self.grid == self._side:
            return cells
        maps = cells.transpose(1, 2).unflatten(2, (self._side, self._side))
        return adaptive_avg_pool2d(maps, self.grid).flatten(2).transpose(1, 2)

    def _run(self, scaled: Tensor) -> Any:
        return self.network(pixel_values=scaled, **self._arguments)


def _last(result: Any) -> Tensor:
    hidden = getattr(result, "last_hidden_state", None)
    if not isinstance(hidden, Tensor) or hidden.ndim not in (3, 4):
        raise ConfigError("the model gives neither tokens nor a map. Name another model")
    return hidden


def _prefix(tokens: int, patch: Any, size: int) -> tuple[int, int]:
    """The number of tokens before the patches, and the side of the square of patches.

    A transformer of one resolution has (size / patch)^2 patches. The tokens of other ones are a
    square, after at most one token.
    """
    if isinstance(patch, list | tuple):
        patch = patch[0]
    if isinstance(patch, int) and 0 <= tokens - (size // patch) ** 2 <= _MOST_PREFIX:
        return tokens - (size // patch) ** 2, size // patch
    for prefix in (0, 1):
        if tokens > prefix and isqrt(tokens - prefix) ** 2 == tokens - prefix:
            return prefix, isqrt(tokens - prefix)
    raise ConfigError(f"{tokens} tokens are no square of patches. Set another size or model")


def _cut(tower: Any, layer: int) -> None:
    """Remove the layers after `layer`, counted from the end: -1 keeps all."""
    depth: int = getattr(tower.config, "num_hidden_layers", None) or 0
    stacks = [m for m in tower.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if len(stacks) != 1 or hasattr(tower.config, "depths"):
        raise ConfigError(f"layer: {layer}, but only the last layer of the model can be used")
    if depth + 1 + layer < 1:
        raise ConfigError(f"layer: {layer}, but the model has {depth} layers")
    del stacks[0][depth + 1 + layer :]


def _probe(network: nn.Module, size: int) -> torch.Size:
    """The shape of the features of two pictures of noise.

    Raises:
        ConfigError: they are not finite, are others in a second call, or depend on the batch.
    """
    noise = np.random.default_rng(0).integers(0, 256, (2, 3, size, size), dtype=np.uint8)
    pixels = torch.from_numpy(noise)
    with torch.inference_mode():
        together, again = network(pixels), network(pixels)
        alone = torch.cat([network(pixels[:1]), network(pixels[1:])])
    if not together.isfinite().all():
        raise ConfigError("the features of noise are not finite. Name another model")
    if not together.equal(again):
        raise ConfigError("a second call gives other features. Name another model")
    if (together - alone).abs().max() > _TOLERANCE * together.abs().max():
        raise ConfigError("a picture's features depend on the batch. Name another model")
    shape: torch.Size = together.shape
    return shape
