"""ResNet with torchvision's weights, beside a network written from torchvision's names."""

import pytest
import torch
from torch.nn import functional

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.networks.backbones import resnet
from manymatch.util.errors import ConfigError

DEPTHS = [2, 1, 1, 1]


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    monkeypatch.setitem(resnet.DEPTHS, "resnet50", DEPTHS)


def norm_of(name, size):
    made = {"weight": torch.rand(size) + 0.5, "bias": torch.randn(size) / 10}
    made |= {"running_mean": torch.randn(size) / 10, "running_var": torch.rand(size) + 0.5}
    return {f"{name}.{key}": value for key, value in made.items()}


def checkpoint():
    """Random weights under torchvision's names, with its classifier, without counts of batches as
    in its files of before 2019."""
    torch.manual_seed(0)

    def convolution(name, out, into, side):
        return {f"{name}.weight": torch.randn(out, into, side, side) / (into * side * side) ** 0.5}

    state = convolution("conv1", 64, 3, 7) | norm_of("bn1", 64)
    width = 64
    for stage, blocks in enumerate(DEPTHS, start=1):
        inner, out = 32 * 2**stage, 128 * 2**stage
        for block in range(blocks):
            name = f"layer{stage}.{block}"
            state |= convolution(f"{name}.conv1", inner, width, 1) | norm_of(f"{name}.bn1", inner)
            state |= convolution(f"{name}.conv2", inner, inner, 3) | norm_of(f"{name}.bn2", inner)
            state |= convolution(f"{name}.conv3", out, inner, 1) | norm_of(f"{name}.bn3", out)
            if block == 0:
                state |= convolution(f"{name}.downsample.0", out, width, 1)
                state |= norm_of(f"{name}.downsample.1", out)
            width = out
    return state | {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}


def naive(state, maps):
    """torchvision's forward pass in evaluation: the stride is in the 3 x 3 convolution."""

    def norm(values, name):
        parts = ("running_mean", "running_var", "weight", "bias")
        return functional.batch_norm(values, *(state[f"{name}.{part}"] for part in parts))

    maps = norm(functional.conv2d(maps, state["conv1.weight"], stride=2, padding=3), "bn1").relu()
    maps = functional.max_pool2d(maps, 3, stride=2, padding=1)
    for stage, blocks in enumerate(DEPTHS, start=1):
        for block in range(blocks):
            name, stride = f"layer{stage}.{block}", 2 if block == 0 and stage > 1 else 1
            inner = norm(functional.conv2d(maps, state[f"{name}.conv1.weight"]), f"{name}.bn1")
            inner = functional.conv2d(
                inner.relu(), state[f"{name}.conv2.weight"], stride=stride, padding=1
            )
            inner = norm(inner, f"{name}.bn2").relu()
            inner = norm(functional.conv2d(inner, state[f"{name}.conv3.weight"]), f"{name}.bn3")
            if block == 0:
                maps = functional.conv2d(maps, state[f"{name}.downsample.0.weight"], stride=stride)
                maps = norm(maps, f"{name}.downsample.1")
            maps = (inner + maps).relu()
    return maps


def test_the_network_computes_what_torchvisions_does(tmp_path):
    state, file = checkpoint(), tmp_path / "resnet50.pth"
    torch.save(state, file)
    network = resnet.pretrained("resnet50", str(file)).eval()
    maps = torch.randn(2, 3, 64, 96)
    result = network(maps)
    assert result.shape == (2, 2048, 2, 3)
    torch.testing.assert_close(result, naive(state, maps), rtol=1e-4, atol=1e-4)
    names = network.state_dict().keys()
    assert names == resnet.fresh("resnet50").state_dict().keys()
    backbone = build_backbone("resnet50", Sources(tmp_path, Extraction(weights=str(file))))
    assert backbone.width == 2048 and backbone.max_regions == 49


@pytest.mark.parametrize(
    ("name", "depths", "parameters"),
    [("resnet50", [3, 4, 6, 3], 25_557_032), ("resnet152", [3, 8, 36, 3], 60_192_808)],
)
def test_the_size_is_torchvisions(monkeypatch, name, depths, parameters):
    monkeypatch.setitem(resnet.DEPTHS, name, depths)
    with torch.device("meta"):
        network = resnet.fresh(name)
    classifier = 2048 * 1000 + 1000
    assert sum(value.numel() for value in network.parameters()) + classifier == parameters


@pytest.mark.parametrize("change", [{"conv1.weight": torch.zeros(1)}, {"bn1.bias": None}])
def test_weights_of_another_network_are_refused(tmp_path, change):
    state = {key: value for key, value in (checkpoint() | change).items() if value is not None}
    file = tmp_path / "other.pth"
    torch.save(state, file)
    with pytest.raises(ConfigError, match=r"not the weights of torchvision's resnet50$"):
        resnet.pretrained("resnet50", str(file))
