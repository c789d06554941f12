"""Any vision model of transformers in the training loop, or the vision part of a two-tower model.

The model comes from a folder or from the hub. A trained model holds its weights and its
configuration, and needs neither.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows, all_real
from manymatch.config.preset import Probability
from manymatch.networks.backbones.hub_model import checked_config, open_model
from manymatch.networks.backbones.learning import Learning, set_learning
from manymatch.networks.backbones.picture_recipe import Recipe, read_recipe
from manymatch.networks.backbones.vision_model import (
    VisionNetwork,
    cut_layers,
    model_faults,
    probe,
    vision_structure,
    vision_tower,
)
from manymatch.networks.encoders.pixels import (
    PixelNetwork,
    PixelSettings,
    facts_of_trained,
    square,
)
from manymatch.util.errors import ConfigError

_FACT = "backbone"
"""The key of `model.json` for what a trained model says about its backbone."""
_NAMES = ("id2label", "label2id", "num_labels")
"""Keys of a configuration for the classes of a classifier, of which there may be thousands."""
_DROP_PATH = "drop_path_rate"


class HubImageSettings(PixelSettings, Learning):
    """The vision model that reads images, and what of the model learns. The preset's
    `parameter_groups` slow the parameters whose name matches `backbone`."""

    model: Annotated[str, Field(min_length=1)]
    """A folder, or NAME@REVISION on the Hugging Face hub."""
    output: Literal["patches", "map", "pooled"] = "patches"
    """The local features: all patches, the cells of a convolutional network, or one vector."""
    grid: Annotated[int, Field(ge=1, le=64)] | None = None
    """Cells in a row, each the mean of patches; null: all patches."""
    layer: Annotated[int, Field(ge=-1000, le=-1)] = -1
    """The layer whose output is read; -1 is the last one."""
    size: Annotated[int, Field(ge=1, le=2048)] | None = None
    """Pixels in a row; null: the model's own. As in the extraction of the pixels."""
    geometry: Literal["squash"] | None = None
    """`squash`: whole pictures instead of the model's crop. As in the extraction of the pixels."""
    drop_path: Probability | None = None
    """The share of a layer's outputs that are dropped in training; null: the model's own."""


class HubImageEncoder(PixelNetwork):
    """`(n, S * S, 3)` pixels as bytes -> patches, cells or one vector `(n, k, F)`.

    Attributes:
        described: the configuration and the recipe, and with which weights training began, for
            `model.json`.

    Raises:
        ConfigError: the model cannot be used as `settings` say.
    """

    settings: HubImageSettings
    network: VisionNetwork

    def __init__(self, settings: HubImageSettings) -> None:
        super().__init__()
        self.settings, self.frozen = settings, settings.train == "none"
        facts, missing = facts_of_trained(), frozenset[str]()
        trained: Any = None
        if facts is None:
            trained = open_model(settings.model)
            where, missing = trained.folder, trained.missing
            recipe = read_recipe(where, settings.size, settings.geometry)
            config = checked_config(where)
            config = {key: value for key, value in config.items() if key not in _NAMES}
            if settings.drop_path is not None:
                _set_drop_path(config, vision_tower(trained.network).config, settings)
        else:
            where = Path("model.json")
            content = facts.get(_FACT)
            if not isinstance(content, dict) or not isinstance(content.get("config"), dict):
                raise ConfigError(f"{where}: no '{_FACT}'. Train the model again")
            config = content["config"]
            recipe = Recipe.described_by(content.get("recipe"), str(where))
        self.described: dict[str, Any] = {"config": config, "recipe": recipe.description()}
        if trained is not None:
            self.described |= {"model": trained.name, "weights_sha256": trained.weights_sha256}
        self.recipe = recipe
        with model_faults(settings.model, recipe):
            self._build(config, where, missing, trained)

    def _build(
        self, config: dict[str, Any], where: Path, missing: frozenset[str], trained: Any
    ) -> None:
        settings = self.settings
        with torch.device("meta"):  # shapes alone say where the regions are
            structure = vision_structure(config, where, settings.layer).eval()
        self.network = VisionNetwork(
            structure, self.recipe, settings.output, settings.grid, missing
        )
        pixels = torch.empty(1, 3, self.recipe.side, self.recipe.side, device="meta")
        output, unused = _unused(self.network, structure, pixels)
        self.width = output.shape[2]
        network = vision_structure(config, where, settings.layer)
        self.network.network = network
        if trained is not None:
            tower = vision_tower(trained.network)
            cut_layers(tower, settings.layer)
            network.load_state_dict(tower.state_dict())
            probe(self.network.eval(), self.recipe.side)
            self.network.train()
        set_learning(network, settings)
        head = getattr(network, "head", None)
        if settings.train.startswith("last") and isinstance(head, nn.Module):
            head.requires_grad_(True)  # SigLIP's pooling, which is behind the layers
        for name, parameter in network.named_parameters():
            if name in unused:
                parameter.requires_grad_(False)
        if settings.checkpointing:
            enable_checkpointing(network)

    @property
    def tower(self) -> nn.Module:
        """The network of transformers."""
        return self.network.network

    def check_pixels(self, preprocessing: str | None) -> None:
        """Refuse pixels that another recipe made.

        Raises:
            ConfigError: `preprocessing`, by which the features were made, is not the model's.
        """
        if preprocessing != str(self.recipe):
            raise ConfigError(
                f"the features are made by '{preprocessing}', but {self.settings.model} reads "
                f"'{self.recipe}'. Set 'kind: pixels' and 'model: {self.settings.model}' in the "
                "extraction of the features, and the same size and geometry"
            )

    def forward(self, features: Tensor) -> tuple[Tensor, PaddedRows]:
        """The regions, and that all of them are real.

        Raises:
            ConfigError: `features` are no pixels of the model's size.
        """
        side, recipe = square(features).shape[1], self.recipe
        if side != recipe.side:
            raise ConfigError(
                f"pictures of {side} x {side} pixels, but {self.settings.model} reads "
                f"{recipe.side} x {recipe.side}. Set one size in the extraction and in the preset"
            )
        pixels = self.seen(features, side, self.network.mean.flatten() / recipe.factor)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            cells = self.network(pixels.permute(0, 3, 1, 2))
        return cells, all_real(len(cells), cells.shape[1], cells.device)

    def train(self, mode: bool = True) -> "HubImageEncoder":
        """A frozen network stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self


def enable_checkpointing(network: Any) -> None:
    """Let a network of transformers compute activations twice instead of keeping them.

    Raises:
        ConfigError: the network does not have this switch.
    """
    if not getattr(network, "supports_gradient_checkpointing", False):
        kind = network.config.model_type
        raise ConfigError(f"checkpointing: '{kind}' has none. Set checkpointing: false")
    old = network.gradient_checkpointing_enable
    # The new name came with transformers 5.23.
    getattr(network, "activation_checkpointing_enable", old)({"use_reentrant": False})


def described_backbone(module: nn.Module) -> dict[str, Any]:
    """What `model.json` says about the backbone in `module`; empty without one."""
    backbones = [part for part in module.modules() if isinstance(part, HubImageEncoder)]
    return {_FACT: backbones[0].described} if backbones else {}


def _set_drop_path(config: dict[str, Any], described: Any, settings: HubImageSettings) -> None:
    """Set the key of a configuration in `config`; `described` is that of the vision model."""
    if not hasattr(described, _DROP_PATH):
        raise ConfigError(
            f"{settings.model}: drop_path: '{described.model_type}' drops no paths. Leave it out"
        )
    part = config.get("vision_config", config)
    part[_DROP_PATH] = settings.drop_path


def _unused(network: VisionNetwork, tower: Any, pixels: Tensor) -> tuple[Tensor, set[str]]:
    """The output, and the names of the parameters of `tower` that it does not depend on."""
    mean, std = network.mean, network.std
    network.mean, network.std = mean.to("meta"), std.to("meta")
    names, parameters = zip(*tower.named_parameters(), strict=True)
    output = network(pixels)
    gradients = torch.autograd.grad(output.sum(), parameters, allow_unused=True)
    network.mean, network.std = mean, std
    pairs = zip(names, gradients, strict=True)
    return output, {name for name, gradient in pairs if gradient is None}
