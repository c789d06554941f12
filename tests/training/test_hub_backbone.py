"""A vision model of transformers in the loop, trained from pixels: by several methods, in parts, by
two processes, with a kill, and loaded without its folder."""

import json
import shutil

import hub_models
import pytest
import torch
from killing import kill_during
from small_methods import merged, small
from tiny_data import make_data, paint
from tiny_run import Run

from manymatch.config.preset import Augmentation, Preset
from manymatch.model.checkpoint import load_model
from manymatch.model.embed import embed
from manymatch.networks.backbones.picture_recipe import read_recipe
from manymatch.networks.layers.lora import LoRALinear
from manymatch.shards.read import batches
from manymatch.util.errors import ConfigError

STEP = "manymatch.training.loop.Losses.forward"
KINDS = [
    ("dive", "vit", {"train": "last 1"}),
    ("cora", "resnet", {"output": "map"}),
    ("pcmepp", "siglip", {"output": "pooled", "train": "lora", "rank": 2}),
]
"""Method, family of a model, and settings of the backbone: each method on one of the outputs."""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for family in ("vit", "resnet", "siglip", "swin"):
        hub_models.save(folder / family, family)
    return folder


@pytest.fixture(scope="module")
def painted(models, tmp_path_factory):
    data = make_data(
        tmp_path_factory.mktemp("painted"), {"train": 12, "validation": 4, "test": 4}, captions=2
    )
    recipe = read_recipe(models / "vit", None, None)
    facts = {"preprocessing": str(recipe), "recipe": json.dumps(recipe.description())}
    paint(data, hub_models.SIZE, {"backbone": "pixels", **facts})
    data.write_shards()
    return data


@pytest.fixture
def new_run(tmp_path, painted):
    return lambda name: Run(tmp_path / name, painted)


def preset(method, backbone, settings=None, **training):
    backbone = {"backbone": backbone}
    if method not in ("vsepp", "cora"):
        backbone = {"image": backbone}
    training = {
        "epochs": 1,
        "images_per_batch": 4,
        "captions_per_image": 1,
        "optimizer": {"lr": 0.001},
        "parameter_groups": [{"match": "backbone", "lr_scale": 0.1, "layer_decay": 0.8}],
    } | training
    model = merged(merged(small(method), backbone), settings or {})
    return Preset.model_validate(
        {"method": method, "features": "grid", "model": model, "training": training}
    )


@pytest.mark.parametrize(("method", "family", "backbone"), KINDS)
def test_methods_train_on_every_output(method, family, backbone, models, new_run):
    run = new_run("run")
    mixing = {"mixing": 0.5} if method == "pcmepp" else None
    run.train(preset(method, {"model": str(models / family), **backbone}, mixing))
    loaded, _, _ = load_model(run.model)
    assert not any(isinstance(part, LoRALinear) for part in loaded.modules()), "merged"


@pytest.mark.slow
def test_a_killed_run_ends_in_the_same_bytes_and_needs_no_folder(models, new_run, tmp_path):
    folder = shutil.copytree(models / "swin", tmp_path / "model")
    drawn = {"drop_path": 0.3, "crop_area": (0.5, 1), "train": "lora"}
    given = preset("vsepp", {"model": str(folder), **drawn}, epochs=2, accumulate=2)
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(given)
    kill_during(lambda: killed.train(given), STEP, 5)
    killed.train(given)
    assert killed.outputs() == whole.outputs()
    shutil.rmtree(folder)
    results = []
    for _ in range(2):
        method, _, vocabulary = load_model(whole.model)
        stream = batches(whole.data.shards, "test", vocabulary, 2)
        results.append(embed(method, list(stream), "cpu").images.vectors)
    assert torch.equal(*results)


@pytest.mark.slow
def test_processes_and_parts_of_a_batch_train_what_learns_like_one_whole(models, new_run):
    backbone = {"model": str(models / "vit"), "train": "lora", "random_crops": False}
    common = {"parameter_groups": [], "precision": "32-true", "strategy": "ddp"}
    states = []
    for devices, parts in ((1, 1), (1, 2), (2, 2)):
        run = new_run(f"{devices}-{parts}")
        run.train(preset("vsepp", backbone, devices=devices, accumulate=parts, **common))
        states.append(load_model(run.model)[0].state_dict())
    for state in states[1:]:
        torch.testing.assert_close(state, states[0], atol=1e-4, rtol=0)


def test_pixels_need_a_backbone_and_have_no_regions_to_drop(models, new_run, tiny, tmp_path):
    given = preset("vsepp", {"model": str(models / "vit")})
    drops = Augmentation(region_drop=0.1)
    for run, changed, words in (
        (new_run("run"), {"model": {}}, "'grid' are pixels, which only a CNN or a backbone can"),
        (new_run("run"), {"augmentation": drops}, "'grid' are pixels without regions"),
        (Run(tmp_path, tiny), {}, "the features are made by"),
    ):
        with pytest.raises(ConfigError, match=words):
            run.train(given.model_copy(update=changed))


@pytest.mark.parametrize(
    ("backbone", "training", "words"),
    [
        ({"model": "vit", "size": 48}, {}, "kind: pixels"),
        ({"model": "no/such/folder@1"}, {}, "neither a folder"),
        ({"model": "vit", "train": "none"}, {}, "layer_decay"),
    ],
)
def test_what_does_not_fit_is_one_line(backbone, training, words, models, new_run, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if (models / backbone["model"]).is_dir():
        backbone = backbone | {"model": str(models / backbone["model"])}
    run = new_run("run")
    with pytest.raises(ConfigError, match=words) as caught:
        run.train(preset("vsepp", backbone, **training))
    assert "\n" not in str(caught.value) and not run.model.exists()
