"""Features of models of transformers: those of transformers itself, or one line."""

import json
import os
import shutil
from pathlib import Path

import httpx2
import hub_models
import numpy as np
import pytest
import torch
import transformers
from hub_models import CROP, FAMILIES, RECIPE, SIZE
from huggingface_hub.errors import GatedRepoError
from picture_place import Place, picture
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.extractors import Extractor
from manymatch.features.image_list import Picture
from manymatch.features.picture_recipe import read_recipe
from manymatch.features.store import FeatureStore
from manymatch.networks.backbones import hub_model
from manymatch.util.errors import ConfigError, DataError

PICTURES = [
    Picture(str(n), picture(n).resize(s)) for n, s in enumerate([(60, 48), (33, 90), (64, 64)])
]


def settings(folder, **given):
    return Extraction(kind="hf", model=str(folder), **given)


def built(folder, **given):
    return build_backbone("hf", Sources(Path(), None, hub=settings(folder, **given)))


def extracted(backbone, batch=2):
    run = Extractor("hf", backbone, torch.device("cpu"), batch).run(PICTURES)
    return np.stack([features for _, features, _ in run])


def pixel_values(recipe, pictures=PICTURES):
    """What transformers' own class for Pillow makes of the pictures."""
    name = recipe["image_processor_type"]
    own = {key: value for key, value in recipe.items() if key != "image_processor_type"}
    processor = getattr(transformers, f"{name}Pil")(**own)
    images = [image.source for image in pictures]
    return torch.from_numpy(np.stack(processor(images)["pixel_values"]))


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


@pytest.mark.parametrize(("family", "layer"), [("vit", -2), ("siglip", -3), ("clip", -2)])
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
    whole = built(folder, grid=2, geometry="squash").read(wide)[1]
    np.testing.assert_allclose(whole[[0, 3]], [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])


def test_more_than_100_cells_are_averaged_to_7_x_7(tmp_path):
    folder, _ = hub_models.save(tmp_path / "model")
    assert built(folder, size=8 * 11).max_regions == 49
    assert built(folder, size=8 * 11, grid=11).max_regions == 121


def test_a_long_strip_is_refused_before_it_is_resized(tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", "vit", CROP | {"size": {"shortest_edge": 2000}})
    with pytest.raises(DataError, match=r"^strip: 60000 x 2 pixels"):
        built(folder).read(Picture("strip", Image.new("RGB", (60000, 2))))


def edit(name, **changes):
    """A fault: keys of a JSON file that are changed, or removed where the value is None."""

    def damage(folder):
        content = json.loads((folder / name).read_text()) | changes
        content = {key: value for key, value in content.items() if value is not None}
        (folder / name).write_text(json.dumps(content))

    return damage


def only_bin(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def outside(folder):
    (folder / "model.safetensors").rename(folder.parent / "x.safetensors")
    places = {"weight_map": {"a": "../x.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))


CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"
FAULTS = {
    "no weights": (lambda f: (f / "model.safetensors").unlink(), {}, "model.safetensors"),
    "a pickle": (only_bin, {}, "pickle"),
    "weights elsewhere": (outside, {}, "elsewhere"),
    "no recipe": (lambda f: (f / PROCESSOR).unlink(), {}, "preprocessor_config.json"),
    "no configuration": (lambda f: (f / CONFIG).unlink(), {}, "config.json: no such file"),
    "no JSON": (lambda f: (f / CONFIG).write_text("{"), {}, "not valid JSON"),
    "a pipe": (lambda f: ((f / CONFIG).unlink(), os.mkfifo(f / CONFIG)), {}, "a pipe"),
    "remote code": (edit(CONFIG, model_type="own", auto_map={}), {}, "code of its repository"),
    "unknown": (edit(CONFIG, model_type="own"), {}, "unknown to this version"),
    "a text model": (edit(CONFIG, model_type="bert"), {}, "no model of pictures"),
    "naflex": (edit(CONFIG, model_type="siglip2"), {}, "any shape"),
    "ViT-MAE": (edit(CONFIG, model_type="vit_mae"), {}, "75%"),
    "another family": (edit(CONFIG, model_type="dinov2"), {}, "lack parts"),
    "a kernel": (edit(CONFIG, attn_implementation="owner/kernel"), {}, "attn_implementation"),
    "quantised": (edit(CONFIG, quantization_config={"a": 1}), {}, "quantization_config"),
    "deep": (edit(CONFIG, num_hidden_layers=10**9), {}, "num_hidden_layers"),
    "huge": (edit(CONFIG, intermediate_size=10**9), {}, "parameters"),
    "wrong type": (edit(CONFIG, hidden_size="many"), {}, "cannot be opened"),
    "own processor": (edit(PROCESSOR, image_processor_type="Levit"), {}, "image processor"),
    "no mean": (edit(PROCESSOR, image_mean=None), {}, "no 'image_mean'"),
    "a text as mean": (edit(PROCESSOR, image_mean=["a", 1, 2]), {}, "not a number"),
    "oblong": (edit(PROCESSOR, size={"height": 2, "width": 4}), {}, "neither a square"),
    "large": (edit(PROCESSOR, size=10**9), {}, "neither a square"),
    "own shapes": (edit(PROCESSOR, size={"shortest_edge": 32}), {}, "geometry: squash"),
    "map": (None, {"output": "map"}, "Set output: patches"),
    "projected": (None, {"output": "projected"}, "projects no pictures"),
    "layer": (None, {"layer": -9}, "3 layers"),
    "grid": (None, {"grid": 9}, "4 x 4 cells"),
    "size": (None, {"size": 4}, "4 x 4 pixels"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_cannot_be_used_is_one_line(fault, tmp_path):
    damage, given, words = FAULTS[fault]
    folder, _ = hub_models.save(tmp_path / "model")
    if damage:
        damage(folder)
    place = Place(tmp_path, 1)
    with pytest.raises(ConfigError) as caught:
        place.extract("x", settings=settings(folder, **given))
    line = str(caught.value)
    assert words in line and str(folder) in line and "\n" not in line
    assert not place.store.parent.exists()


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
def test_the_probe_refuses_features_that_are_no_function_of_the_picture(
    kind, words, tmp_path, monkeypatch
):
    from manymatch.features import hf

    folder, _ = hub_models.save(tmp_path / "model")
    opened = hub_model.open_model(str(folder))
    model = hub_model.HubModel("m", folder, "0", Random(opened.network, kind), frozenset())
    with pytest.raises(ConfigError, match=words):
        hf.HubBackbone(model, settings(folder))


def cached(place, name, folder, commit):
    """Put the model into a cache of the hub, as its commit and as `main`."""
    home = place / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, home / "snapshots" / commit)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(commit)


def test_models_of_the_hub(tmp_path, monkeypatch):
    """A copy on this machine needs no network; what is missing or gated is one line."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder, _ = hub_models.save(tmp_path / "model")
    commit = "0123456789abcdef" * 2 + "01234567"
    cached(tmp_path / "hub", "owner/vit", folder, commit)
    here = built(folder)
    for name in ("owner/vit", f"owner/vit@{commit}", "owner/vit@main"):
        backbone = built(name)
        assert backbone.facts["model"] == f"owner/vit@{commit}"
        assert backbone.weights_sha256 == here.weights_sha256
    with pytest.raises(ConfigError, match="'owner/other': neither a folder nor available"):
        built("owner/other")
    with pytest.raises(ConfigError, match="neither a folder"):
        built("../no/such/folder")

    def gated(name, local_files_only, **_):
        if local_files_only:
            raise OSError
        request = httpx2.Request("GET", "https:")
        raise GatedRepoError("no", response=httpx2.Response(403, request=request))

    monkeypatch.setattr(hub_model, "snapshot_download", gated)
    with pytest.raises(ConfigError, match="consent"):
        built("owner/gated")


def test_divided_weights_and_a_half_precision_are_read(tmp_path):
    """Files of a divided model have one hash; their features are in float32."""
    folder, model = hub_models.save(tmp_path / "whole")
    model.half().save_pretrained(tmp_path / "divided", max_shard_size="10KB")
    shutil.copy(folder / PROCESSOR, tmp_path / "divided")
    assert (tmp_path / "divided" / hub_model.INDEX).is_file()
    divided = built(tmp_path / "divided")
    assert divided.weights_sha256 != built(folder).weights_sha256
    np.testing.assert_allclose(extracted(divided), extracted(built(folder)), atol=0.05)
    next((tmp_path / "divided").glob("model-*2-of*")).unlink()
    with pytest.raises(ConfigError, match="complete"):
        built(tmp_path / "divided")


def test_the_pooler_of_a_classifier_is_not_used(tmp_path):
    """A classifier's file has no pooler; the vector is that of the picture's token."""
    torch.manual_seed(0)
    classifier = transformers.ViTForImageClassification(
        transformers.ViTConfig(**FAMILIES["vit"][1])
    ).eval()
    classifier.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / PROCESSOR).write_text(json.dumps(RECIPE))
    with torch.inference_mode():
        expected = classifier.vit(pixel_values(RECIPE)).last_hidden_state[:, :1]
    np.testing.assert_allclose(
        extracted(built(tmp_path / "model", output="pooled")), expected, atol=1e-6
    )


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
        ({"kind": "lite0", "model": "x"}, "only 'kind: hf'"),
        ({"grid": 7}, "only 'kind: hf'"),
        ({"kind": "hf", "model": "x", "weights": "y"}, "has 'model' instead"),
        ({"kind": "hf", "model": "x", "output": "pooled", "grid": 7}, "one vector"),
        ({"kind": "hf", "model": "x", "layer": 0}, "layer"),
    ],
)
def test_settings_that_do_not_fit_their_kind_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Extraction(**given)
