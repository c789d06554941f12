"""ResNet-50, -101 and -152 (He et al., 2016) from transformers.

The map has 2048 features and one cell per 32 x 32 pixels, so 7 x 7 cells at 224 px.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn
from transformers import ResNetConfig, ResNetModel

from manymatch.features.backbone import GridBackbone, Sources
from manymatch.features.weights import HUB
from manymatch.system.errors import ConfigError, first_line

SIZE, WIDTH = 224, 2048
MEAN = [255 * value for value in (0.485, 0.456, 0.406)]
STD = [255 * value for value in (0.229, 0.224, 0.225)]
SCALING = "ImageNet mean and deviation"
DEPTHS = {"resnet50": [3, 4, 6, 3], "resnet101": [3, 4, 23, 3], "resnet152": [3, 8, 36, 3]}


def build(name: str, sources: Sources) -> GridBackbone:
    """Return the backbone.

    `sources.weights` is a folder with config.json and model.safetensors, or a hub name.
    """
    network = pretrained(name, sources.weights)
    return GridBackbone(network, MEAN, STD, size=SIZE, width=WIDTH, scaling=SCALING)


def pretrained(name: str, weights: str | None) -> nn.Sequential:
    """Return the network (b, 3, S, S) -> (b, 2048, S / 32, S / 32) with pretrained weights."""
    return _stages(_load(name, weights or HUB[name]))


def fresh(name: str) -> nn.Sequential:
    """Return the same network with random weights."""
    return _stages(ResNetModel(ResNetConfig(depths=DEPTHS[name])))


def _stages(network: ResNetModel) -> nn.Sequential:
    stages = {f"layer{n}": stage for n, stage in enumerate(network.encoder.stages, start=1)}
    return nn.Sequential(OrderedDict(stem=network.embedder, **stages))


def _load(name: str, weights: str) -> ResNetModel:
    try:
        loaded: Any = ResNetModel.from_pretrained(
            weights, use_safetensors=True, output_loading_info=True, dtype=torch.float32
        )
    except (OSError, ValueError, RuntimeError) as error:
        reason = first_line(error)
        raise ConfigError(
            f"{name}: no weights at '{weights}' ({reason}). Set weights to a folder with "
            f"config.json and model.safetensors of {HUB[name]}, or connect to the network"
        ) from None
    network, report = loaded
    if report["missing_keys"] or report["mismatched_keys"]:
        raise ConfigError(f"{name}: the weights at '{weights}' lack parts of the network")
    if network.config.depths != DEPTHS[name] or network.config.hidden_sizes[-1] != WIDTH:
        raise ConfigError(f"{name}: the weights at '{weights}' are of another network")
    return network
