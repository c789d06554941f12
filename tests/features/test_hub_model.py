"""Opening a model of transformers: what cannot be used is one line; the hub is asked once."""

import json
import os
import shutil

import hub_models
import numpy as np
import pytest
from hub_models import COMMIT, PROCESSOR, built, edit, extracted, gated, only_bin, settings
from picture_place import Place

from manymatch.networks.backbones import hub_model
from manymatch.util.errors import ConfigError


def outside(folder):
    (folder / "model.safetensors").rename(folder.parent / "x.safetensors")
    places = {"weight_map": {"a": "../x.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(places))


CONFIG = "config.json"
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
    "other weights": (edit(CONFIG, transformers_weights="x"), {}, "transformers_weights"),
    "quantised": (edit(CONFIG, quantization_config={"a": 1}), {}, "quantization_config"),
    "deep": (edit(CONFIG, num_hidden_layers=10**9), {}, "num_hidden_layers"),
    "many experts": (edit(CONFIG, part={"num_experts": 10**6}), {}, "num_experts"),
    "asks the hub": (edit(CONFIG, part={"backbone": "owner/name"}), {}, "'backbone' is not"),
    "huge": (edit(CONFIG, intermediate_size=10**9), {}, "parameters"),
    "wrong type": (edit(CONFIG, hidden_size="many"), {}, "cannot be opened"),
    "own processor": (edit(PROCESSOR, image_processor_type="Levit"), {}, "image processor"),
    "no mean": (edit(PROCESSOR, image_mean=None), {}, "no 'image_mean'"),
    "a text as mean": (edit(PROCESSOR, image_mean=["a", 1, 2]), {}, "not a number"),
    "oblong": (edit(PROCESSOR, size={"height": 2, "width": 4}), {}, "neither a square"),
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


def test_models_of_the_hub(tmp_path, monkeypatch):
    """A copy on this machine needs no network; what is missing or gated is one line."""
    folder, _ = hub_models.save(tmp_path / "model")
    hub_models.cached(tmp_path / "hub", "owner/vit", folder, monkeypatch)
    here = built(folder)
    for name in ("owner/vit", f"owner/vit@{COMMIT}", "owner/vit@main"):
        backbone = built(name)
        assert backbone.facts["model"] == f"owner/vit@{COMMIT}"
        assert backbone.weights_sha256 == here.weights_sha256
    with pytest.raises(ConfigError, match="'owner/other': neither a folder nor available"):
        built("owner/other")
    with pytest.raises(ConfigError, match="neither a folder"):
        built("../no/such/folder")

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
