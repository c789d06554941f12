"""ResNet-50, -101 and -152 (He et al., 2016) from transformers.

The map has 2048 features and one cell per 32 x 32 pixels, so 7 x 7 cells at 224 px. The weights are
a folder in transformers' form or a file of torchvision: the papers start from torchvision's first
weights (IMAGENET1K_V1, the files `resnet50-0676ba61.pth` and `resnet152-394f9c45.pth`), and
`microsoft/resnet-152` is another training of the same network.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import ResNetConfig, ResNetModel

from manymatch.networks.backbones import HUB
from manymatch.networks.torch_file import load_weights
from manymatch.util.errors import ConfigError, first_line

WIDTH = 2048
MEAN = [255 * value for value in (0.485, 0.456, 0.406)]
STD = [255 * value for value in (0.229, 0.224, 0.225)]
DEPTHS = {"resnet50": [3, 4, 6, 3], "resnet101": [3, 4, 23, 3], "resnet152": [3, 8, 36, 3]}
_NAMES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"^conv1\.", "embedder.embedder.convolution."),
    (r"^bn1\.", "embedder.embedder.normalization."),
    (r"^layer(\d)\.", lambda match: f"encoder.stages.{int(match[1]) - 1}.layers."),
    (r"\.conv(\d)\.", lambda match: f".layer.{int(match[1]) - 1}.convolution."),
    (r"\.bn(\d)\.", lambda match: f".layer.{int(match[1]) - 1}.normalization."),
    (r"\.downsample\.0\.", ".shortcut.convolution."),
    (r"\.downsample\.1\.", ".shortcut.normalization."),
)
"""Parts of torchvision's names of parameters, and what transformers calls them."""


def pretrained(name: str, weights: str | None) -> nn.Sequential:
    """Return the network (b, 3, S, S) -> (b, 2048, S / 32, S / 32) with pretrained weights."""
    if weights is not None and (Path(weights).suffix == ".pth" or Path(weights).is_file()):
        return _stages(_load_torchvision(name, Path(weights)))
    return _stages(_load(name, weights or HUB[name]))


def fresh(name: str) -> nn.Sequential:
    """Return the same network with random weights."""
    return _stages(_network(name))


def _network(name: str) -> ResNetModel:
    return ResNetModel(ResNetConfig(depths=DEPTHS[name]))


def _stages(network: ResNetModel) -> nn.Sequential:
    stages = {f"layer{n}": stage for n, stage in enumerate(network.encoder.stages, start=1)}
    return nn.Sequential(OrderedDict(stem=network.embedder, **stages))


def _load_torchvision(name: str, file: Path) -> ResNetModel:
    network, kind = _network(name), f"torchvision's {name}"
    state = load_weights(file, kind)
    try:
        network.load_state_dict(
            {_transformers_name(key): state[key] for key in state if not key.startswith("fc.")}
        )
    except RuntimeError:
        raise ConfigError(f"{file}: not the weights of {kind}") from None
    return network


def _transformers_name(key: str) -> str:
    for pattern, name in _NAMES:
        key = re.sub(pattern, name, key)
    return key


def _load(name: str, weights: str) -> ResNetModel:
    try:
        loaded: Any = ResNetModel.from_pretrained(
            weights, use_safetensors=True, output_loading_info=True, dtype=torch.float32
        )
    except (OSError, ValueError, RuntimeError) as error:
        reason = first_line(error)
        raise ConfigError(
            f"{name}: no weights at '{weights}' ({reason}). Set weights to a folder with "
            f"config.json and model.safetensors of {HUB[name]}, to torchvision's file (.pth), or "
            "connect to the network"
        ) from None
    network, report = loaded
    if report["missing_keys"] or report["mismatched_keys"]:
        raise ConfigError(f"{name}: the weights at '{weights}' lack parts of the network")
    if network.config.depths != DEPTHS[name] or network.config.hidden_sizes[-1] != WIDTH:
        raise ConfigError(f"{name}: the weights at '{weights}' are of another network")
    return network
