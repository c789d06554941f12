"""The GPU memory that a training needs, known before it begins."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from manymatch.config.preset import Preset
from manymatch.networks.encoders.cnn import CNN, RANDOM, CNNSettings

_BYTES_OF_A_WEIGHT = 16
"""Weight, gradient and the optimiser's two moments in float32."""


def estimated_bytes(preset: Preset) -> int:
    """The memory of a step with a CNN in 16-bit precision: what the CNN keeps for the backward
    pass, and its weights. 0 without a CNN: a step on stored features takes little.

    Nothing is computed: the tensors have shapes alone.
    """
    stated = _cnn_in(preset.model)
    if stated is None:
        return 0
    settings = CNNSettings.model_validate(stated)
    kept: dict[int, Tensor] = {}  # by storage, because several operations keep the same tensor

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.device("meta"):
        network = CNN(settings.model_copy(update={"weights": RANDOM})).to(torch.bfloat16)
        picture = torch.empty(1, 3, settings.crop, settings.crop, dtype=torch.bfloat16)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = network.network(picture)
    weights = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
    image_bytes = sum(
        tensor.untyped_storage().nbytes() for at, tensor in kept.items() if at not in weights
    )
    count = sum(parameter.numel() for parameter in network.parameters())
    del output  # until here, because what is kept ends with it
    images = -(-preset.training.images_per_batch // preset.training.accumulate)
    return images * image_bytes + _BYTES_OF_A_WEIGHT * count


def _cnn_in(settings: Any) -> Any:
    """The settings of the CNN, wherever a method's settings have them; None without a CNN."""
    if not isinstance(settings, dict):
        return None
    nested = (_cnn_in(value) for value in settings.values())
    return settings.get("cnn") or next(filter(None, nested), None)
