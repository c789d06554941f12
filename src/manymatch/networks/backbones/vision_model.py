"""Vision models of transformers: regions from pixels, for features and for training.

What a model gives is taken from its outputs instead of a list of families. The regions of a
transformer are its last tokens without the tokens before the patches; those of a convolutional
network are the cells of its last map. A probe refuses a model whose features are random or depend
on the other pictures of a batch.
"""

import contextlib
import inspect
from collections.abc import Iterator
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from manymatch.networks.backbones.hub_model import auto_class, check_config, quiet
from manymatch.networks.backbones.picture_recipe import Recipe, Scaling
from manymatch.util.errors import ConfigError, first_line

_MOST_PREFIX = 64
"""The most tokens before the patches: of the picture, of a distillation, registers."""
_TOLERANCE = 1e-3
"""The most that a picture's features alone and in a batch may differ, relative to the largest."""


class Scaled(nn.Module):
    """A module that scales pixels as a `recipe` says."""

    mean: Tensor
    std: Tensor

    def __init__(self, recipe: Scaling) -> None:
        super().__init__()
        self.factor = recipe.factor
        for name, values in (("mean", recipe.mean), ("std", recipe.std)):
            self.register_buffer(name, torch.tensor(values).view(1, 3, 1, 1), persistent=False)

    def scaled(self, pixels: Tensor) -> Tensor:
        """The input (b, 3, H, W) of the model, bit for bit as transformers computes it."""
        # A product in float64 that is rounded to float32, in which the rest is computed.
        return ((pixels.double() * self.factor).float() - self.mean) / self.std


class VisionNetwork(Scaled):
    """Pixels (b, 3, S, S) -> regions (b, k, F) of a model's `output`.

    Args:
        network: a model of transformers, which may be on the device "meta"; then `network` may
            become the same model with weights afterwards.
        recipe: its side S, and the scaling of pixels.
        output: "patches", "map", "pooled" or "projected".
        grid: cells in a row; None: all cells.
        missing: the weights of the network that are random.

    Attributes:
        width: F.
        side: the cells of the network in a row; 1 for one vector.

    Raises:
        ConfigError: the model does not have the output or the grid.
    """

    def __init__(
        self,
        network: Any,
        recipe: Recipe,
        output: str,
        grid: int | None = None,
        missing: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(recipe)
        self.output = output
        tower = vision_tower(network)
        projected = output == "projected"
        if projected and not hasattr(network, "get_image_features"):
            raise ConfigError("the model projects no pictures. Set output: pooled or patches")
        if projected and hasattr(network, "text_model"):
            network.text_model = None
        self.network: Any = network if projected else tower
        run = network.get_image_features if projected else tower.forward
        trained = getattr(tower.config, "image_size", recipe.side)
        sizes = trained if isinstance(trained, list | tuple) else [trained]
        flag = "interpolate_pos_encoding"
        other = {*sizes} != {recipe.side} and flag in inspect.signature(run).parameters
        self._arguments = {flag: True} if other else {}
        self.grid = self.side = 1
        if not projected:
            self._learn(recipe.side, grid, missing)

    def _learn(self, size: int, grid: int | None, missing: frozenset[str]) -> None:
        """Find from one output where the cells are."""
        normed: list[bool] = []
        parts: dict[str, nn.Module] = dict(self.network.named_modules())
        self._norm = next((name for name in parts if name.endswith("post_layernorm")), "")
        norm = parts[self._norm] if self._norm else None
        hook = norm and norm.register_forward_hook(lambda _, __, out: normed.append(out.ndim == 3))
        device = next(self.network.parameters()).device
        try:
            with torch.no_grad():
                result = self.run(torch.zeros(1, 3, size, size, device=device))
        finally:
            if hook:
                hook.remove()
        if any(normed):  # CLIP normalises the token of the picture alone
            self._norm = ""
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
        if self.output == "pooled":
            if self._pools and any("pooler" in key for key in missing):
                raise ConfigError("the weights lack the pooler. Set output: patches")
            return
        if (self.output == "map") != self._is_map:
            raise ConfigError(
                f"output: {self.output}, but the model gives "
                + ("a map. Set output: map" if self._is_map else "tokens. Set output: patches")
            )
        if height != width:
            raise ConfigError(f"a map of {height} x {width} cells is no square. Set another size")
        self.side, self.grid = height, grid or height
        if self.grid > height:
            raise ConfigError(f"grid: {self.grid}, but the model has {height} x {width} cells")

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = self.scaled(pixels)
        if self.output == "projected":
            features = self.network.get_image_features(pixel_values=scaled, **self._arguments)
            vectors: Tensor = getattr(features, "pooler_output", features)
            return vectors.unsqueeze(1)
        result = self.run(scaled)
        if self.output == "pooled" and self._pools:
            pooled: Tensor = result.pooler_output
            return pooled.flatten(1).unsqueeze(1)
        hidden = _last(result)
        tokens = hidden.flatten(2).transpose(1, 2) if self._is_map else hidden
        if self._norm:
            tokens = self.network.get_submodule(self._norm)(tokens)
        if self.output == "pooled" and self._prefix:
            return tokens[:, :1]
        cells = tokens[:, self._prefix :]
        if self.output == "pooled":
            return cells.mean(dim=1, keepdim=True)
        if self.grid == self.side:
            return cells
        maps = cells.transpose(1, 2).unflatten(2, (self.side, self.side))
        return adaptive_avg_pool2d(maps, self.grid).flatten(2).transpose(1, 2)

    def run(self, scaled: Tensor) -> Any:
        """What the model of transformers gives for scaled pixels."""
        return self.network(pixel_values=scaled, **self._arguments)


@contextlib.contextmanager
def model_faults(name: str, recipe: Recipe) -> Iterator[None]:
    """Raise each error of the block, which builds or runs a `VisionNetwork`, as a `ConfigError`
    that names the model."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except Exception as error:  # the code of hundreds of models, on sizes of the user
        raise ConfigError(
            f"{name}: no features of {recipe.side} x {recipe.side} pixels "
            f"({first_line(error)}). Set another size, or name another model"
        ) from None


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


def vision_tower(network: Any) -> Any:
    """The part of a model of transformers that reads pictures: of a two-tower model one tower."""
    return getattr(network, "vision_model", network)


def vision_structure(config: dict[str, Any], path: Path, layer: int = -1) -> Any:
    """The network of pictures that the configuration in the file `path` describes, without the
    layers after `layer`, with any weights.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    import transformers
    from transformers.initialization import no_init_weights

    check_config(config, path)
    try:
        described = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
        with quiet(), torch.device("meta"):  # the network of texts takes no memory
            empty = vision_tower(auto_class(described, texts=False).from_config(described))
        with no_init_weights():  # drawing weights takes seconds, and others follow
            network = type(empty)(empty.config)
    except Exception as error:  # a model's own code raises almost anything
        raise ConfigError(
            f"{path}: no network of pictures ({first_line(error)}). Name another model"
        ) from None
    cut_layers(network, layer)
    return network


def cut_layers(tower: Any, layer: int) -> None:
    """Remove the layers after `layer`, counted from the end: -1 keeps all.

    Raises:
        ConfigError: the network has no such layer, or stages of layers.
    """
    if layer == -1:
        return
    depth: int = getattr(tower.config, "num_hidden_layers", None) or 0
    stacks = [m for m in tower.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if len(stacks) != 1 or hasattr(tower.config, "depths"):
        raise ConfigError(f"layer: {layer}, but only the last layer of the model can be used")
    if depth + 1 + layer < 1:
        raise ConfigError(f"layer: {layer}, but the model has {depth} layers")
    del stacks[0][depth + 1 + layer :]
    tower.config.num_hidden_layers = depth + 1 + layer  # `learning` looks for so many


def probe(network: nn.Module, size: int) -> torch.Size:
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
