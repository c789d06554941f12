"""ResNeXt-101 32x8d (Xie et al., CVPR 2017) with the weights of Mahajan et al. (ECCV 2018), which
were trained on photographs with hashtags ("WSL"): a 16 x 16 x 2048 map at 512 px.

Parameters have torchvision's names, as in the published file `ig_resnext101_32x8-c38310e5.pth`.
"""

from collections import OrderedDict
from pathlib import Path

from torch import Tensor, nn

from manymatch.networks.torch_file import load_weights
from manymatch.util.errors import ConfigError

BLOCKS = (3, 4, 23, 3)
GROUPS, GROUP_WIDTH = 32, 8
_NETWORK = "a ResNeXt-101 32x8d"
_CLASSIFIER = ("fc.weight", "fc.bias")


def pretrained(name: str, weights: str | None) -> nn.Sequential:
    """Return the network (b, 3, S, S) -> (b, 2048, S / 32, S / 32) with the file's weights."""
    if weights is None:
        raise ConfigError(
            f"{name}: no weights. Set weights to the file ig_resnext101_32x8-c38310e5.pth"
        )
    network = fresh(name)
    state = load_weights(Path(weights), _NETWORK)
    try:
        network.load_state_dict({key: state[key] for key in state if key not in _CLASSIFIER})
    except RuntimeError:
        raise ConfigError(f"{weights}: not the weights of {_NETWORK}") from None
    return network


def fresh(name: str) -> nn.Sequential:
    """Return the same network with random weights."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
        bn1=nn.BatchNorm2d(64),
        relu=nn.ReLU(),  # not in place: `cnn.checkpointing` reads its input again
        maxpool=nn.MaxPool2d(3, stride=2, padding=1),
    )
    width = 64
    for number, blocks in enumerate(BLOCKS):
        size = 256 * 2**number
        rest = [_Block(size, size, 1) for _ in range(blocks - 1)]
        first = _Block(width, size, stride=1 if number == 0 else 2)
        layers[f"layer{number + 1}"] = nn.Sequential(first, *rest)
        width = size
    network = nn.Sequential(layers)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class _Block(nn.Module):
    """1 x 1, grouped 3 x 3 and 1 x 1 convolutions, with a shortcut."""

    def __init__(self, width: int, size: int, stride: int) -> None:
        super().__init__()
        inner = size // 256 * GROUPS * GROUP_WIDTH
        self.conv1 = nn.Conv2d(width, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride=stride, padding=1, groups=GROUPS, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, size, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(size)
        self.downsample: nn.Module = nn.Identity()
        if width != size:
            shortcut = nn.Conv2d(width, size, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(size))

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.bn1(self.conv1(maps)).relu_()
        inner = self.bn2(self.conv2(inner)).relu_()
        return self.bn3(self.conv3(inner)).add_(self.downsample(maps)).relu_()
