"""A preset that no GPU can hold is known before its training begins."""

import hub_models
import pytest

from manymatch.cli.check import warn_of_memory
from manymatch.config.preset import Preset, read_preset
from manymatch.training.gpu_memory import estimated_bytes
from manymatch.util.errors import ConfigError


def estimated(root, name, **overrides):
    """In GB."""
    preset = read_preset(root / "presets" / "flickr30k" / f"{name}.yaml", overrides)
    return estimated_bytes(preset) / 1e9


def test_recomputed_blocks_keep_a_fifth_of_the_memory(root, capsys):
    name, key = "vse_infinity_resnext101_bert", "model.image.cnn.checkpointing"
    assert estimated(root, name) < 20 < 80 < estimated(root, name, **{key: False}) < 90
    parts = {key: False, "training.accumulate": 8}
    assert 10 < estimated(root, name, **parts) < 13
    assert estimated(root, "vse_infinity_butd_bert") == 0
    path = root / "presets" / "flickr30k" / f"{name}.yaml"
    for kept in (True, False):
        warn_of_memory(path, read_preset(path, {key: not kept}))
    assert capsys.readouterr().err.count("checkpointing: true") == 1


def test_a_backbone_needs_less_if_less_learns(tmp_path):
    folder, _ = hub_models.save(tmp_path / "model", "vit")
    found = []
    for settings in (
        {},
        {"checkpointing": True},
        {"train": "lora"},
        {"train": "last 1"},
        {"train": "none"},
    ):
        image = {"encoder": "linear", "backbone": {"model": str(folder), **settings}}
        preset = Preset(method="dive", features="x", model={"image": image})
        found.append(estimated_bytes(preset))
    whole, recomputed, lora, last, none = found
    assert whole > recomputed > none and whole > lora > last > none > 0
    image = {"encoder": "linear", "backbone": {"model": "not/here"}}
    assert estimated_bytes(Preset(method="dive", features="x", model={"image": image})) == 0
    image["backbone"] = {"model": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match="no such folder"):
        estimated_bytes(Preset(method="dive", features="x", model={"image": image}))
