"""ResNet-50, -101 and -152 (He et al., 2016) of transformers: the 7 x 7 x 2048 map at 224 px."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import ResNetModel

from manymatch.errors import ConfigError
from manymatch.features.backbone import GridBackbone, Normalised, Sources

SIZE, CELLS, WIDTH = 224, 7, 2048
MEAN = [255 * value for value in (0.485, 0.456, 0.406)]
STD = [255 * value for value in (0.229, 0.224, 0.225)]
DEPTHS = {"resnet50": [3, 4, 6, 3], "resnet101": [3, 4, 23, 3], "resnet152": [3, 8, 36, 3]}
HUB = {name: f"microsoft/resnet-{name.removeprefix('resnet')}" for name in DEPTHS}


def build(name: str, sources: Sources) -> GridBackbone:
    """`sources.weights`: a folder with config.json and model.safetensors, or a hub name."""
    return GridBackbone(
        Normalised(_Map(_load(name, sources.weights or HUB[name])), MEAN, STD),
        size=SIZE,
        width=WIDTH,
        cells=CELLS,
        preprocessing=f"RGB, squashed to {SIZE} x {SIZE} bicubic, ImageNet mean and deviation",
    )


class _Map(nn.Module):
    """The last feature map as a bare tensor."""

    def __init__(self, network: ResNetModel) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network(pixels).last_hidden_state
        return maps


def _load(name: str, weights: str) -> ResNetModel:
    try:
        loaded: Any = ResNetModel.from_pretrained(
            weights, use_safetensors=True, output_loading_info=True, dtype=torch.float32
        )
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"{name}: no weights at '{weights}'; set weights to a folder with config.json and "
            f"model.safetensors (those of {HUB[name]}), or connect to the network ({reason})"
        ) from None
    network, report = loaded
    if report["missing_keys"] or report["mismatched_keys"]:
        raise ConfigError(f"{name}: the weights at '{weights}' lack parts of the network")
    if network.config.depths != DEPTHS[name] or network.config.hidden_sizes[-1] != WIDTH:
        raise ConfigError(f"{name}: the weights at '{weights}' are of another network")
    return network
