"""Features of models of transformers: those of transformers itself, or one line."""

import hub_models
import numpy as np
import pytest
import torch
from hub_models import (
    CROP,
    FAMILIES,
    PICTURES,
    RECIPE,
    SIZE,
    built,
    extracted,
    pixel_values,
    settings,
)
from picture_place import Place
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.features import hf
from manymatch.features.extractors import Extractor
from manymatch.features.image_list import Picture
from manymatch.features.store import FeatureStore
from manymatch.networks.backbones import hub_model
from manymatch.networks.backbones.picture_recipe import read_recipe
from manymatch.util.errors import ConfigError, DataError


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_those_of_transformers(family, tmp_path):
    """Patches or the map, and the pooled vector; each picture alone, and in batches."""
    folder, model = hub_models.save(tmp_path / "model", family)
    tower = getattr(model, "vision_model", model)
    prefix, pooled = FAMILIES[family][2:]
    with torch.inference_mode():
        result = tower(pixel_values(RECIPE))
        hidden = result.last_hidden_state
        if family == "clip":
            hidden = tower.post_layernorm(hidden)
    cells = hidden.flatten(2).transpose(1, 2) if hidden.ndim == 4 else hidden[:, prefix:]
    vectors = {
        "first": hidden[:, 0],
        "mean": cells.mean(1),
        "pooler": (result.pooler_output if pooled == "pooler" else hidden).flatten(1),
    }
    output = "map" if hidden.ndim == 4 else "patches"
    expected = {output: cells, "pooled": vectors[pooled][:, None]}
    for name, values in expected.items():
        backbone = built(folder, output=name)
        assert (backbone.max_regions, backbone.width) == values.shape[1:]
        features = extracted(backbone)
        scale = values.abs().max()
        np.testing.assert_allclose(features / scale, values / scale, atol=1e-6)
        for one, image in zip(features, PICTURES, strict=True):
            ((_, alone, _),) = Extractor("hf", backbone, torch.device("cpu"), 1).run([image])
            np.testing.assert_array_equal(alone, one)


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_projected_features_are_those_of_transformers(family, tmp_path):
    folder, model = hub_models.save(tmp_path / "model", family, CROP)
    with torch.inference_mode():
        expected = model.get_image_features(pixel_values(CROP)).pooler_output
    features = extracted(built(folder, output="projected"))
    np.testing.assert_allclose(features[:, 0], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("family", "layer"), [("vit", -2), ("siglip", -3)])
def test_layers_grids_and_other_sizes(family, layer, tmp_path):
    """An earlier layer gets the last norm; the cells of a grid are means; positions are resized."""
    folder, model = hub_models.save(tmp_path / "model", family)
    tower = getattr(model, "vision_model", model)
    larger = RECIPE | {"size": {"height": 64, "width": 64}}
    with torch.inference_mode():
        result = tower(
            pixel_values(larger), output_hidden_states=True, interpolate_pos_encoding=True
        )
        norm = tower.layernorm if family == "vit" else tower.post_layernorm
        tokens = norm(result.hidden_states[layer])[:, FAMILIES[family][2] :]
    means = tokens.unflatten(1, (4, 2, 4, 2)).mean((2, 4)).flatten(1, 2)
    features = extracted(built(folder, layer=layer, grid=4, size=64))
    np.testing.assert_allclose(features, means, atol=1e-5)


RECIPES = {
    "ViT": RECIPE,
    "bicubic square": RECIPE | {"resample": 3, "image_processor_type": "SiglipImageProcessor"},
    "CLIP": CROP,
    "DINOv2": CROP | {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 41}},
    "DeiT": RECIPE
    | {
        "image_processor_type": "DeiTImageProcessor",
        "size": {"height": 40, "width": 40},
        "crop_size": {"height": SIZE, "width": SIZE},
    },
    "ConvNeXt": RECIPE
    | {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": SIZE}},
    "ConvNeXt, large": RECIPE
    | {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}},
    "no normalisation": RECIPE | {"do_normalize": False, "rescale_factor": 0.01},
}


@pytest.mark.parametrize("name", RECIPES)
def test_pixels_are_those_of_transformers_bit_for_bit(name, tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", "resnet", RECIPES[name])
    backbone = built(folder, output="map")
    pixels = np.concatenate([backbone.read(image)[0] for image in PICTURES])
    ours = backbone.network.scaled(torch.from_numpy(pixels).permute(0, 3, 1, 2))
    assert ours.equal(pixel_values(RECIPES[name]))


def test_boxes_of_a_crop_are_places_in_the_picture(tmp_path):
    """Squashed pictures have the cells of the whole picture."""
    folder, _ = hub_models.save(tmp_path / "model", "vit", CROP)
    wide = Picture("wide", Image.new("RGB", (180, 90)))
    boxes = built(folder, grid=2).read(wide)[1]
    left, top = (72 - SIZE) // 2 / 72, (36 - SIZE) // 2 / 36
    np.testing.assert_allclose(boxes[0], [left, top, left + 16 / 72, top + 16 / 36], atol=1e-6)
    np.testing.assert_allclose(boxes[3, 2:], [left + SIZE / 72, top + SIZE / 36], atol=1e-6)
    assert built(folder, size=8 * 11).max_regions == 49  # more than 100 cells are averaged
    assert built(folder, size=8 * 11, grid=11).max_regions == 121
    whole = built(folder, grid=2, geometry="squash").read(wide)[1]
    np.testing.assert_allclose(whole[[0, 3]], [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])


def test_a_long_strip_is_refused_before_it_is_resized(tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", "vit", CROP | {"size": {"shortest_edge": 2000}})
    with pytest.raises(DataError, match=r"^strip: 60000 x 2 pixels"):
        built(folder).read(Picture("strip", Image.new("RGB", (60000, 2))))


class Random(torch.nn.Module):
    """A network whose features are random, or shares of their batch."""

    def __init__(self, network, kind):
        super().__init__()
        self.network, self.kind, self.config = network, kind, network.config

    def forward(self, pixel_values):
        result = self.network(pixel_values)
        hidden = result.last_hidden_state
        change = torch.rand_like(hidden) if self.kind == "random" else hidden.mean(0)
        return type(result)(last_hidden_state=hidden + change)


@pytest.mark.parametrize(("kind", "words"), [("random", "second call"), ("batch", "batch")])
def test_the_probe_refuses_features_that_are_no_function_of_the_picture(kind, words, tmp_path):
    folder, _ = hub_models.save(tmp_path / "model")
    opened = hub_model.open_model(str(folder))
    model = hub_model.HubModel("m", folder, "0", Random(opened.network, kind), frozenset())
    with pytest.raises(ConfigError, match=words):
        hf.HubBackbone(model, settings(folder))


def test_the_store_says_from_what_it_is_made(tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", "clip", CROP)
    place = Place(tmp_path, 2)
    place.extract("x", settings=settings(folder, grid=2))
    with FeatureStore(place.store) as store:
        facts = dict(store.attributes)
        assert store.has_boxes and store.read([1])[0].shape == (1, 4, 16)
    assert facts.pop("preprocessing") == str(read_recipe(folder, None, None))
    assert len(facts.pop("weights_sha256")) == 64
    assert facts == {
        "backbone": "hf",
        "model": str(folder),
        "output": "patches",
        "layer": "-1",
        "size": str(SIZE),
        "grid": "2",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "hf"}, "model"),
        ({"kind": "lite0", "model": "x"}, "only kind hf"),
        ({"grid": 7}, "only kind hf"),
        ({"kind": "hf", "model": "x", "weights": "y"}, "has 'model' instead"),
        ({"kind": "hf", "model": "x", "output": "pooled", "grid": 7}, "one vector"),
        ({"kind": "hf", "model": "x", "layer": 0}, "layer"),
    ],
)
def test_settings_that_do_not_fit_their_kind_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Extraction(**given)
