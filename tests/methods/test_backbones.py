"""The backbones of `presets/backbones.yaml` with every method: valid settings, and a training step
with tiny models in their place."""

from dataclasses import replace
from pathlib import Path

import hub_models
import hub_texts
import pytest
import torch
import yaml
from command_line import configured, fails, run
from small_methods import CLIP_METHODS, NAMES, losses, merged, small

from manymatch.batch.padding import padded_rows
from manymatch.cli import backbone as command
from manymatch.config.edit import edited
from manymatch.config.params import Extraction
from manymatch.config.preset import Preset, Training, read_preset
from manymatch.methods import build_method, check_model, vocabulary_of
from manymatch.training.optimizer import make_optimizer

PRESETS = Path(__file__).parents[2] / "presets"
KNOWN = {
    name: command.Backbone.model_validate(content)
    for name, content in yaml.safe_load((PRESETS / "backbones.yaml").read_text()).items()
}
STARTS = {
    "vsepp": "vsepp_resnet152_gru",
    "vse_infinity": "vse_infinity_resnext101_bert",
    "pvse": "pvse_resnet152_bigru",
    "pcme": "pcme_resnet152_bigru",
    "pcmepp": "pcmepp_butd_bert",
    "msrm": "msrm_resnet152_bigru",
    "swamp": "swamp_butd_bigru",
    "dive": "dive_resnext101_bert",
    "maxmatch": "maxmatch_resnext101_bert",
    "cora": "cora_butd_bert",
}
"""Method -> the preset to start from."""
METHODS = [name for name in NAMES if name not in CLIP_METHODS]


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, "siglip2-base") for method in METHODS] + [("dive", name) for name in KNOWN],
)
def test_each_method_and_each_backbone_make_a_valid_preset(method, name):
    backbone = KNOWN[name]
    Extraction(kind="pixels", **backbone.source)
    path = PRESETS / "coco" / f"{STARTS[method]}.yaml"
    text = edited(path, backbone.fine_tuned(read_preset(path), "pixels"))
    preset = Preset.model_validate(yaml.safe_load(text))
    settings = check_model(method, preset.model)
    image = getattr(settings, "image", settings)
    assert image.backbone.model == backbone.model and image.cnn is None
    assert preset.setting == "small-scale" and preset.augmentation.region_drop == 0.0
    assert preset.training.epochs == backbone.training["epochs"]
    assert backbone.text["encoder"] in str(preset.model) or method == "vsepp"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    hub_models.save(folder / "vit", "vit")
    hub_texts.save(folder / "clip", "clip")
    return folder


@pytest.mark.parametrize(
    ("method", "name"),
    [("vsepp", "siglip2-base"), ("pcmepp", "siglip2-base"), ("cora", "swin-base-224")],
)
def test_methods_take_a_step_with_their_parameter_groups(
    method, name, folders, vocabulary, make_batch
):
    """With `tiny` models in place of those of the table, and without the sizes of papers."""
    backbone = KNOWN[name]
    text = backbone.text
    if text["encoder"] == "hf":
        text = {"encoder": "hf", "hf": {"model": str(folders / "clip")}}
    backbone = backbone.model_copy(update={"model": str(folders / "vit"), "text": text})
    start = Preset(method=method, features="x", model=small(method))
    model, training = start.model, {}
    for key, value in backbone.fine_tuned(start, "pixels").items():
        group, *path = key.split(".")
        if group == "model":
            model = merged(model, {path[0]: value})
        elif group == "training":
            training[path[0]] = value
    for group in training["parameter_groups"]:
        group.pop("from_epoch", None)
    batch = make_batch(range(4))
    count, side = len(batch.image_ids), hub_models.SIZE
    pixels = torch.randint(256, (count, side * side, 3)).to(torch.uint8)
    padding = padded_rows(torch.ones(pixels.shape[:2], dtype=torch.bool))
    batch = replace(batch, features=pixels, region_padding=padding)
    words = vocabulary_of(method, model, vocabulary)
    built = build_method(method, model, vocabulary=words, feature_width=3)
    optimizer = make_optimizer(built, Training.model_validate(training), fused=True)
    before = {name: value.clone() for name, value in built.named_parameters()}
    built.start_epoch(1)
    built.start_step(1.0)
    torch.stack(list(losses(built, batch).values())).sum().backward()
    optimizer.step()
    changed = {name for name, value in built.named_parameters() if value.ne(before[name]).any()}
    assert any("backbone." in name for name in changed)
    kind = text["encoder"]
    assert any(f".{kind}.network." in name for name in changed) or method == "vsepp"


def test_the_command_writes_a_preset_and_its_extraction(root, tmp_path, monkeypatch, capfd):
    configured(root, tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    run("backbone flickr30k coco/msrm_resnet152_bigru clip-vit-base-patch16", monkeypatch)
    preset = read_preset(tmp_path / "presets/flickr30k/msrm_clip-vit-base-patch16.yaml")
    assert preset.features == "pixels-clip-vit-base-patch16"
    params = yaml.safe_load((tmp_path / "params.yaml").read_text())
    assert params["extraction"][preset.features] == {
        "kind": "pixels",
        "model": "openai/clip-vit-base-patch16",
    }
    assert preset.features in params["features"]
    run("backbone coco pcmepp_butd_bert clip-vit-base-patch16", monkeypatch)
    made, committed = (
        read_preset(tmp_path / f"presets/coco/pcmepp_{name}.yaml")
        for name in ("clip-vit-base-patch16", "clip_b16")
    )
    *groups, of_scales = committed.training.parameter_groups  # the paper's rates, by hand
    training = committed.training.model_copy(update={"parameter_groups": tuple(groups)})
    same = {"features": made.features, "training": training}
    assert made == committed.model_copy(update=same) and of_scales.match == "^(scale|shift)"
    params = yaml.safe_load((tmp_path / "params.yaml").read_text())
    params["extraction"]["pixels-vit-base-224"] = {"kind": "pixels256", "batch_size": 3}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    path = tmp_path / "presets/backbones.yaml"
    known = yaml.safe_load(path.read_text())
    clip = known["clip-vit-base-patch16"]
    known |= {
        "v1.5": clip,
        "no-encoder": clip | {"text": {}},
        "no-settings": clip | {"text": {"encoder": "hf", "hf": 3}},
    }
    path.write_text(yaml.safe_dump(known))
    start = "backbone flickr30k coco/msrm_resnet152_bigru"
    before = {*tmp_path.glob("presets/**/*")}
    for words, text in {
        "'v1.5' has a dot": f"{start} v1.5",
        "no-encoder: text: expected 'encoder'": f"{start} no-encoder",
        "no-settings: text: expected 'encoder'": f"{start} no-settings",
        "did you mean 'flickr30k'": start.replace("30k", "30", 1) + " siglip2-base",
        "extraction.pixels-vit-base-224.kind is pixels256": f"{start} vit-base-224",
        "siglip2-base": "backbone flickr30k dive_resnext101_bert siglip2-bas",
        "no such preset": "backbone flickr30k dives siglip2-base",
        "'swamp_video': unknown key": "backbone flickr30k youcook2/swamp siglip2-base",
        "exists already": "backbone flickr30k coco/msrm_resnet152_bigru clip-vit-base-patch16",
    }.items():
        assert words in fails(text, monkeypatch, capfd)
    assert {*tmp_path.glob("presets/**/*")} == before
    assert yaml.safe_load((tmp_path / "params.yaml").read_text()) == params
