"""Any vision model of transformers in the loop: what it gives is what transformers gives; a trained
model's folder changes nothing; only what should learn learns; a fault is one line."""

import copy
import json
from functools import cache

import hub_models
import numpy as np
import pytest
import torch
from hub_models import CROP, FAMILIES, PICTURES, RECIPE, SIZE, pixel_values
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.config.preset import ParameterGroup
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.image_list import Picture
from manymatch.features.pixels import ModelPixels
from manymatch.networks.backbones.learning import Learning, set_learning
from manymatch.networks.backbones.picture_recipe import Recipe
from manymatch.networks.encoders.hub_image import (
    HubImageEncoder,
    HubImageSettings,
    enable_checkpointing,
)
from manymatch.networks.encoders.image import ImageSettings
from manymatch.networks.encoders.pixels import structure_only
from manymatch.training.optimizer import parameter_groups
from manymatch.util.errors import ConfigError, ManyMatchError

MAPS = ("convnext", "mobilenet_v2", "pvt_v2", "regnet", "resnet")


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return cache(lambda family: hub_models.save(tmp_path_factory.mktemp(family), family)[0])


def built(folder, **settings):
    return HubImageEncoder(HubImageSettings(model=str(folder), **settings))


def stored(folder, **settings):
    """The pixels of the pictures as a store has them."""
    extraction = Extraction(kind="pixels", model=str(folder), **settings)
    backbone = build_backbone("pixels", Sources(folder, extraction))
    pixels = [backbone.read(picture)[0].reshape(-1, 3) for picture in PICTURES]
    return torch.from_numpy(np.stack(pixels))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_output_is_that_of_transformers_and_the_folder_is_needed_once(family, folders, root):
    """And the table of families says what each one has."""
    folder = folders(family)
    encoder = built(folder, output="map" if family in MAPS else "patches").eval()
    pixels = stored(folder)
    cells, padding = encoder(pixels)
    tower = hub_models.saved_tower(folder)
    with torch.inference_mode():
        hidden = tower(pixel_values(RECIPE)).last_hidden_state
        if family == "clip":
            hidden = tower.post_layernorm(hidden)
    expected = hidden.flatten(2).transpose(1, 2) if hidden.ndim == 4 else hidden
    expected = expected[:, FAMILIES[family][2] :]
    scale = expected.abs().max()
    torch.testing.assert_close(cells / scale, expected / scale, atol=1e-6, rtol=0)
    assert padding.all_real and encoder.width == cells.shape[2]

    facts = json.loads(json.dumps({"backbone": encoder.described}))
    moved = encoder.settings.model_copy(update={"model": "no/such/folder"})
    with structure_only(facts):
        again = HubImageEncoder(moved).eval()
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again(pixels)[0], cells)

    output, *cells = family_table(root)[family]
    assert output == encoder.settings.output
    for cell, extra in zip(cells, EXTRAS, strict=True):
        try:
            extra(copy.deepcopy(encoder.tower))
        except (ConfigError, AttributeError):
            assert cell == "no"
        else:
            assert cell == "yes"


def family_table(root):
    """Family -> its row in docs/backbones.md: the output, then yes or no of each of `EXTRAS`."""
    rows = (line.split("|") for line in (root / "docs/backbones.md").read_text().splitlines())
    cells = ([cell.strip().strip("`") for cell in row[1:-1]] for row in rows if len(row) == 8)
    return {row[0]: row[1:] for row in cells if row[0] in FAMILIES}


EXTRAS = (
    lambda tower: set_learning(tower, Learning(train="lora")),
    lambda tower: set_learning(tower, Learning(train="last 1")),
    lambda tower: tower.config.drop_path_rate,
    enable_checkpointing,
)
"""What a family has or lacks. The encoder refuses the same (see the wrong settings below)."""


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("clip", {"output": "pooled"}),
        ("vit", {"grid": 2, "size": 48, "geometry": "squash"}),
        ("siglip", {"layer": -2}),
    ],
)
def test_outputs_are_those_of_frozen_features(family, settings, folders, tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", family, CROP)
    encoder = built(folder, **settings).eval()
    given = {key: value for key, value in settings.items() if key in ("size", "geometry")}
    pixels = stored(folder, **given)
    features = hub_models.extracted(hub_models.built(folder, **settings))
    torch.testing.assert_close(encoder(pixels)[0], torch.from_numpy(features), atol=1e-5, rtol=1e-5)


def learning(encoder, pixels):
    """The names of the parameters that get a gradient, which are those that ask for one."""
    encoder.train()(pixels)[0].square().sum().backward()
    names = {name for name, value in encoder.tower.named_parameters() if value.grad is not None}
    asked = {name for name, value in encoder.tower.named_parameters() if value.requires_grad}
    assert names == asked
    return names


@pytest.mark.parametrize("train", ["lora", "last 1"])
def test_layers_that_are_cut_do_not_count(train, folders):
    """And the trained model is built again without its folder."""
    folder, pixels = folders("clip"), stored(folders("clip"))
    encoder = built(folder, layer=-2, train=train)
    names = learning(encoder, pixels)
    layers = {name.split("layers.")[1][0] for name in names if "layers." in name}
    assert layers == {"lora": {"0", "1"}, "last 1": {"1"}}[train]
    with structure_only(json.loads(json.dumps({"backbone": encoder.described}))):
        again = HubImageEncoder(encoder.settings)
    again.load_state_dict(encoder.state_dict())
    assert torch.equal(again.eval()(pixels)[0], encoder.eval()(pixels)[0])


@pytest.mark.parametrize("family", ["siglip", "swin", "convnext"])
def test_only_what_should_learn_learns(family, folders):
    folder, pixels = folders(family), stored(folders(family))
    output = {"convnext": "map", "siglip": "pooled"}.get(family, "patches")
    everything = learning(built(folder, output=output), pixels)
    last = learning(built(folder, output=output, train="last 1"), pixels)
    stack = {"convnext": "stages.3", "swin": "layers.2"}.get(family, ".2.")
    assert last < everything and len(last) > 3
    assert all(stack in name or "norm" in name or name.startswith("head") for name in last)
    encoder = built(folder, output=output, train="lora").eval()
    fresh = encoder(pixels)[0]
    torch.testing.assert_close(fresh, built(folder, output=output).eval()(pixels)[0])
    lora = learning(encoder, pixels)
    assert lora and all(name.endswith(("lora_a", "lora_b")) for name in lora)


def test_a_frozen_network_drops_nothing_and_has_no_gradient(folders):
    pixels = stored(folders("swin"))
    encoder = built(folders("swin"), train="none", drop_path=0.5, random_crops=False)
    cells = encoder.train()(pixels)[0]
    assert not cells.requires_grad and torch.equal(cells, encoder.eval()(pixels)[0])


def test_paths_are_dropped_and_pictures_mirrored_in_training_alone(folders):
    folder, pixels = folders("swin"), stored(folders("swin"))
    dropping = built(folder, drop_path=0.5, random_crops=False)
    calm = built(folder, drop_path=0.0, random_crops=False)
    torch.manual_seed(0)
    assert not torch.equal(dropping.train()(pixels)[0], dropping.eval()(pixels)[0])
    assert torch.equal(calm.train()(pixels)[0], calm.eval()(pixels)[0])
    mirrored = built(folder, drop_path=0.0).train()
    flipped = pixels.unflatten(1, (SIZE, SIZE)).flip(2).flatten(1, 2)
    torch.manual_seed(1)
    drawn = mirrored(pixels)[0]
    both = [calm(pixels)[0], calm(flipped)[0]]
    for row in range(len(pixels)):
        assert any(torch.allclose(drawn[row], cells[row], atol=1e-5) for cells in both)


def test_checkpointing_changes_no_gradient(folders):
    gradients = []
    for checkpointing in (False, True):
        encoder = built(folders("swin"), checkpointing=checkpointing, random_crops=False)
        torch.manual_seed(0)
        encoder.train()(stored(folders("swin")))[0].square().sum().backward()
        gradients.append({n: p.grad for n, p in encoder.named_parameters() if p.grad is not None})
    torch.testing.assert_close(*gradients)


def test_the_rate_falls_by_the_number_of_layers_behind(folders):
    count, encoder = 2, built(folders("clip"), layer=-2)
    group = ParameterGroup(match="network", lr_scale=0.1, layer_decay=0.5)
    groups = parameter_groups(encoder, [group], lr=1.0)
    rates = {id(value): one["lr"] for one in groups for value in one["params"]}
    for name, value in encoder.named_parameters():
        number = name.split("layers.")[1][0] if "layers." in name else None
        depth = count - int(number) if number else 0 if "post" in name else count + 1
        assert rates[id(value)] == pytest.approx(0.1 * 0.5**depth), name


def test_only_networks_of_the_group_need_layers(folders):
    parts = {"a": built(folders("clip")), "b": built(folders("mobilenet_v2"), output="map")}
    both = torch.nn.ModuleDict(parts)
    assert parameter_groups(both, [ParameterGroup(match=r"^a\.", layer_decay=0.5)], lr=1.0)
    with pytest.raises(ConfigError, match="layer_decay: 'mobilenet_v2' has no list"):
        parameter_groups(both, [ParameterGroup(match=r"^b\.", layer_decay=0.5)], lr=1.0)


FAULTS = [
    ("vit", {"output": "map"}, "gives tokens"),
    ("resnet", {}, "gives a map"),
    ("resnet", {"output": "map", "train": "lora"}, "no torch.nn.Linear"),
    ("mobilenet_v2", {"output": "map", "train": "last 1"}, "no list of whole layers"),
    ("vit", {"train": "last 9"}, "last 9"),
    ("vit", {"drop_path": 0.1}, "drops no paths"),
    ("resnet", {"output": "map", "checkpointing": True}, "checkpointing"),
    ("vit", {"layer": -9}, "layer: -9"),
    ("vit", {"grid": 9}, "grid: 9"),
    ("vit", {"size": 3}, "size"),
]


@pytest.mark.parametrize(("family", "settings", "words"), FAULTS)
def test_a_wrong_setting_is_one_line(family, settings, words, folders):
    with pytest.raises(ConfigError, match=words) as caught:
        built(folders(family), **settings)
    assert "\n" not in str(caught.value) and str(folders(family)) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no 'backbone'"),
        ({"config": {"model_type": "vit"}}, "no recipe"),
        ({"config": {"model_type": "vit"}, "recipe": {"side": 10**9}}, "no recipe"),
        ({"config": {"model_type": "unknown"}, "recipe": "right"}, "unknown"),
        ({"config": {"model_type": "vit", "hidden_size": -1}, "recipe": "right"}, "no network"),
        ({"config": {"model_type": "vit", "num_labels": 10**6}, "recipe": "right"}, "num_labels"),
    ],
)
def test_facts_of_a_stranger_are_one_line(content, words, folders):
    encoder = built(folders("vit"))
    if content and content.get("recipe") == "right":
        content = content | {"recipe": encoder.described["recipe"]}
    with structure_only({"backbone": content}), pytest.raises(ManyMatchError, match=words) as fault:
        HubImageEncoder(encoder.settings)
    assert "\n" not in str(fault.value)


def test_pixels_must_be_those_of_the_model(folders, tmp_path):
    folder, _ = hub_models.save(tmp_path / "vit", "vit", CROP)
    encoder = built(folder)
    encoder.check_pixels(str(encoder.recipe))
    with pytest.raises(ConfigError, match="kind: pixels"):
        encoder.check_pixels("RGB, middle square, 256 x 256 bicubic")
    with pytest.raises(ConfigError, match="48 x 48 pixels"):
        encoder(stored(folder, size=48))
    with pytest.raises(ConfigError, match="reads pixels"):
        encoder(torch.zeros(2, 49, 8))
    wide = Picture("wide", Image.new("RGB", (180, 90)))
    frozen = hub_models.built(folder, grid=2).read(wide)[1]
    np.testing.assert_array_equal(ModelPixels(encoder.recipe).cells(wide, 2), frozen)
    again = Recipe.described_by(json.dumps(encoder.described["recipe"]), "x")
    assert again == encoder.recipe
    with pytest.raises(ValueError, match="cnn and a backbone"):
        ImageSettings(cnn={}, backbone={"model": "x"})
