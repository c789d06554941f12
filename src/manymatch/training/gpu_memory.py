"""The GPU memory that a training needs, known before it begins."""

from pathlib import Path
from typing import Any

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from torch import Tensor, nn

from manymatch.config.preset import Preset
from manymatch.methods import check_model
from manymatch.networks.backbones.hub_model import CONFIG, checked_config
from manymatch.networks.backbones.learning import set_learning
from manymatch.networks.backbones.picture_recipe import read_recipe
from manymatch.networks.backbones.vision_model import VisionNetwork, vision_structure
from manymatch.networks.encoders.cnn import CNN, RANDOM, CNNSettings
from manymatch.networks.encoders.hub_image import HubImageSettings, enable_checkpointing
from manymatch.networks.encoders.image import PixelNetworks
from manymatch.util.errors import ConfigError

_BYTES_OF_A_WEIGHT, _BYTES_OF_A_FROZEN_ONE = 16, 4
"""Weight, gradient and the optimiser's two moments in float32; the weight alone."""


def estimated_bytes(preset: Preset) -> int:
    """The memory of a step with a network of pixels in 16-bit precision: what the network keeps for
    the backward pass, and its weights. 0 without such a network, because a step on stored features
    takes little, and for a model of the hub that is not here yet.

    Nothing is computed: the tensors have shapes alone.
    """
    kept: dict[int, Tensor] = {}  # by storage, because several operations keep the same tensor

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.device("meta"):
        made = _made(pixel_settings(check_model(preset.method, preset.model)))
        if made is None:
            return 0
        network, run, side = made
        network.to(torch.bfloat16)
        picture = torch.empty(1, 3, side, side, dtype=torch.bfloat16)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = run(picture)
    weights = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
    image_bytes = sum(
        tensor.untyped_storage().nbytes() for at, tensor in kept.items() if at not in weights
    )
    count = sum(
        parameter.numel()
        * (_BYTES_OF_A_WEIGHT if parameter.requires_grad else _BYTES_OF_A_FROZEN_ONE)
        for parameter in network.parameters()
    )
    del output  # until here, because what is kept ends with it
    images = -(-preset.training.images_per_batch // preset.training.accumulate)
    return images * image_bytes + count


def need_text(needed: int) -> str:
    """The bytes that a step needs of a GPU, in words."""
    return f"a step needs about {needed / 1e9:.0f} GB of a GPU's memory"


def memory_text(preset: Preset) -> str:
    """What a step needs of the memory of a GPU, or why this is not known; empty for a step on
    stored features, which takes little."""
    if needed := estimated_bytes(preset):
        return need_text(needed)
    pixels = pixel_settings(check_model(preset.method, preset.model))
    if isinstance(pixels, HubImageSettings):
        return (
            f"the memory of a step is not known: {CONFIG} of {pixels.model} is on the hub, "
            "and not on this machine yet"
        )
    return ""


def pixel_settings(settings: Any) -> CNNSettings | HubImageSettings | None:
    """The settings of the network that reads pixels in a method's settings; None without one."""
    image = getattr(settings, "image", settings)
    return (image.cnn or image.backbone) if isinstance(image, PixelNetworks) else None


def _made(settings: CNNSettings | HubImageSettings | None) -> tuple[nn.Module, Any, int] | None:
    """A network, the function that reads pictures, and their side."""
    if isinstance(settings, CNNSettings):
        network = CNN(settings.model_copy(update={"weights": RANDOM})).network
        return network, network, settings.crop
    folder = folder_here(settings.model) if settings else None
    if settings is None or folder is None:
        return None
    recipe = read_recipe(folder, settings.size, settings.geometry)
    tower = vision_structure(checked_config(folder), folder / CONFIG, settings.layer)
    vision = VisionNetwork(tower, recipe, settings.output, settings.grid)
    set_learning(tower, settings)
    if settings.checkpointing:
        enable_checkpointing(tower)
    return tower.train(), vision.run, recipe.side


def folder_here(model: str) -> Path | None:
    """The folder of a model of transformers on this machine; None if the hub would be asked. A
    folder that is missing, under a name that the hub does not have, is a `ConfigError`."""
    if Path(model).is_dir():
        return Path(model)
    repository, _, revision = model.partition("@")
    try:
        cached = try_to_load_from_cache(repository, CONFIG, revision=revision or None)
    except HFValidationError:
        raise ConfigError(
            f"model: no such folder, and no name on the hub: {model}. Set the key to one of both"
        ) from None
    return Path(cached).parent if isinstance(cached, str) else None
