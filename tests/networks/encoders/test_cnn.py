"""The CNN in the training loop: which pixels it sees, what it makes of them, whose weights."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import ResNetConfig, ResNetModel

from manymatch.batch.padding import padded_rows
from manymatch.networks.backbones import resnet, resnext
from manymatch.networks.encoders.cnn import CNN, CNNSettings
from manymatch.networks.encoders.pixels import cropped, structure_only
from manymatch.util.errors import ConfigError

SMALL = {"backbone": "resnet50", "weights": "random", "crop": 32}


@pytest.fixture(autouse=True)
def shallow(monkeypatch):
    """One block a stage is as good as three."""
    monkeypatch.setitem(resnet.DEPTHS, "resnet50", [1, 1, 1, 1])
    monkeypatch.setattr(resnext, "BLOCKS", (2, 1, 1, 1))


def pixels(count, side, seed=0):
    """`(count, side * side, 3)` bytes."""
    generator = torch.Generator().manual_seed(seed)
    shape = (count, side * side, 3)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def cnn(seed=0, **settings):
    torch.manual_seed(seed)
    return CNN(CNNSettings(**(SMALL | settings)))


def test_random_crops_lie_anywhere_and_half_of_them_are_mirrored():
    torch.manual_seed(0)
    row, column = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    places = torch.stack([row, column, row], 2).expand(400, 6, 6, 3)
    result = cropped(places, 4, random=True)
    assert result.shape == (400, 4, 4, 3)
    seen = set()
    for crop in result:
        top, step = int(crop[0, 0, 0]), int(crop[0, 1, 1] - crop[0, 0, 1])
        left = int(crop[0, :, 1].min())
        expected = places[0, top : top + 4, left : left + 4]
        assert torch.equal(crop, expected if step == 1 else expected.flip(1))
        seen.add((top, left, step))
    assert len(seen) == 3 * 3 * 2
    torch.manual_seed(0)
    assert torch.equal(cropped(places, 4, random=True), result)


def test_the_map_is_that_of_the_network_on_normalised_pixels(tmp_path):
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 2048], depths=[1, 1, 1, 1])
    torch.manual_seed(0)
    ResNetModel(config).save_pretrained(tmp_path)
    network = ResNetModel.from_pretrained(tmp_path).eval()
    features = pixels(2, 64)
    result, padding = cnn(weights=str(tmp_path), crop=64).eval()(features)
    seen = features.view(2, 64, 64, 3) / 255
    seen = (seen - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    expected = network(seen.permute(0, 3, 1, 2)).last_hidden_state
    assert result.shape == (2, 4, 2048)
    everything = padded_rows(torch.ones(2, 4, dtype=torch.bool))
    torch.testing.assert_close(asdict(padding), asdict(everything))
    torch.testing.assert_close(result, expected.flatten(2).transpose(1, 2), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fixed", [True, False])
def test_batch_norms_keep_their_statistics_if_told(fixed):
    network, features = cnn(fixed_statistics=fixed).train(), pixels(2, 32)
    before = {name: value.clone() for name, value in network.named_buffers()}
    network(features)
    after = dict(network.named_buffers())
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert bool(changed) != fixed
    assert network.training and not cnn().eval().training


@pytest.mark.parametrize("backbone", ["resnet50", "resnext101_wsl"])
def test_recomputed_activations_change_no_number(backbone):
    features, gradients, outputs = pixels(2, 32), [], []
    for checkpointing in (False, True):
        network = cnn(backbone=backbone, fixed_statistics=True, checkpointing=checkpointing)
        torch.manual_seed(0)
        cells, _ = network(features)
        cells.square().mean().backward()
        outputs.append(cells.detach())
        gradients.append({name: value.grad for name, value in network.named_parameters()})
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (torch.zeros(1, 49, 2048), "a CNN or backbone reads pixels"),
        (torch.zeros(1, 50, 3).byte(), "Set the preset's features to"),
        (pixels(1, 16), "crop: 32 pixels, but pictures have 16"),
    ],
)
def test_what_cannot_be_read_is_refused(features, message):
    with pytest.raises(ConfigError, match=message):
        cnn()(features)


@pytest.mark.parametrize(
    "settings",
    [
        {"checkpointing": True},
        *({"crop_area": area} for area in [(0.5, 0.2), (0.0, 1.0), (0.5, 1.5)]),
        {"crop_area": (0.1, 1.0), "random_crops": False},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        CNNSettings(**settings)


def test_a_trained_model_needs_no_published_weights(tmp_path):
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="nowhere"):
        cnn(weights=nowhere)
    with structure_only({}):
        assert cnn(weights=nowhere).state_dict().keys() == cnn().state_dict().keys()


# --- ResNeXt-101 ------------------------------------------------------------------------------


def published(path, **changes):
    """A file of weights in the published form, with its classifier."""
    torch.manual_seed(0)
    state = resnext.fresh("resnext101_wsl").state_dict()
    classifier = {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    torch.save({**state, **classifier, **changes}, path)
    return path


def test_resnext_has_the_size_and_names_of_the_published_one(monkeypatch):
    monkeypatch.setattr(resnext, "BLOCKS", (3, 4, 23, 3))
    with torch.device("meta"):
        network = resnext.fresh("resnext101_wsl")
    classifier = 2048 * 1000 + 1000
    assert sum(value.numel() for value in network.parameters()) + classifier == 88_791_336
    shapes = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    assert len(shapes) == 624
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer1.0.downsample.0.weight"] == (256, 64, 1, 1)
    assert shapes["layer1.0.conv2.weight"] == (256, 8, 3, 3)
    assert shapes["layer3.22.bn3.running_var"] == (1024,)
    assert shapes["layer4.2.conv2.weight"] == (2048, 64, 3, 3)


def naive_block(maps, state, name, stride):
    """Grouped convolution as one convolution a group, batch norm as its formula."""

    def norm(values, part):
        weight, bias, mean, variance = (
            state[f"{name}.{part}.{key}"].view(1, -1, 1, 1)
            for key in ("weight", "bias", "running_mean", "running_var")
        )
        return (values - mean) / (variance + 1e-5).sqrt() * weight + bias

    inner = norm(functional.conv2d(maps, state[f"{name}.conv1.weight"]), "bn1").relu()
    filters = state[f"{name}.conv2.weight"].chunk(32)
    groups = zip(inner.chunk(32, 1), filters, strict=True)
    parts = [functional.conv2d(part, kernel, stride=stride, padding=1) for part, kernel in groups]
    inner = norm(torch.cat(parts, 1), "bn2").relu()
    inner = norm(functional.conv2d(inner, state[f"{name}.conv3.weight"]), "bn3")
    if f"{name}.downsample.0.weight" in state:
        maps = functional.conv2d(maps, state[f"{name}.downsample.0.weight"], stride=stride)
        maps = norm(maps, "downsample.1")
    return (inner + maps).relu()


def test_resnext_is_its_formula(tmp_path):
    network = resnext.pretrained("resnext101_wsl", str(published(tmp_path / "w.pth"))).double()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    network.eval()
    state = network.state_dict()
    maps = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    result = network(maps)
    stem = nn.Sequential(*list(network.children())[:4])
    expected = stem(maps)
    for stage, blocks in enumerate((2, 1, 1, 1), start=1):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 1 else 1
            expected = naive_block(expected, state, f"layer{stage}.{block}", stride)
    assert result.shape == (2, 2048, 2, 2)
    torch.testing.assert_close(result, expected)


def test_weights_that_are_missing_or_no_weights_are_refused(tmp_path):
    torch.save({"conv1.weight": Path("code")}, tmp_path / "code.pth")
    torch.save(torch.zeros(3), tmp_path / "tensor.pth")
    published(tmp_path / "shape.pth", **{"conv1.weight": torch.zeros(1)})
    published(tmp_path / "more.pth", more=torch.zeros(1))
    for weights, message in (
        (None, "weights to the file"),
        (str(tmp_path / "none.pth"), "no such file"),
        (str(tmp_path / "code.pth"), "not a file of torch.save"),
        (str(tmp_path / "tensor.pth"), "no tensors by name"),
        (str(tmp_path / "shape.pth"), "not the weights of a ResNeXt-101"),
        (str(tmp_path / "more.pth"), "not the weights of a ResNeXt-101"),
    ):
        with pytest.raises(ConfigError, match=message) as caught:
            resnext.pretrained("resnext101_wsl", weights)
        assert "\n" not in str(caught.value)
