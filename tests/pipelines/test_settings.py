"""Overrides belong to a settings file; names are added to the workspace, all or none."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml

from manymatch.config.preset import read_preset
from manymatch.util.errors import ConfigError
from pipelines import flows, settings

CORA = Path("presets/scenes/cora.yaml")


@pytest.fixture(autouse=True)
def checkout(root, tmp_path, monkeypatch):
    """The settings of the checkout, to be changed."""
    shutil.copy(root / "params.yaml", tmp_path)
    for name in ("presets", "experiments"):
        shutil.copytree(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*overrides, preset=CORA):
    """What is told when the overrides are written."""
    lines = []
    settings.write(settings.overridden(overrides, preset), Path(), lines.append)
    return lines


def snapshot():
    files = [Path("params.yaml"), *Path("presets").rglob("*.yaml")]
    return {str(path): path.read_text() for path in files}


def test_only_the_overridden_lines_change():
    before = snapshot()
    named = f"{CORA}:model.last_activation=true"
    message = write("training.epochs=2", named, "shards.thumbnail=64")
    changed = {name: text for name, text in snapshot().items() if text != before[name]}
    assert set(changed) == {str(CORA), "params.yaml"}
    for name, text in changed.items():
        old, new = before[name].splitlines(), text.splitlines()
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == (2 if name == str(CORA) else 1)
    assert read_preset(CORA).training.epochs == 2
    assert len(message) == 3 and "training.epochs" in "".join(message)


def test_a_changed_preset_is_no_longer_reproduced():
    path = Path("presets/coco/maxmatch_butd_bigru.yaml")
    write("seed=5", preset=path)
    assert "setting: reproduced" in path.read_text()
    write("training.epochs=1", preset=path)
    assert "setting: small-scale" in path.read_text()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainig.epochs=2", r"unknown setting 'trainig'; did you mean 'training'\?"),
        ("training.epoch=2", r"unknown key 'training.epoch'; did you mean 'epochs'\?"),
        ("training.epochs=two", r"training.epochs: .*'two'"),
        ("training.epochs", "expected KEY=VALUE"),
        ("training.epochs=[", "not a YAML value"),
        ("training.epochs.more=1", "'epochs' is a value, not a group"),
        ("presets/scenes/corra.yaml:seed=1", "no settings file .*; did you mean"),
        ("../elsewhere.yaml:seed=1", "no settings file"),
        ("seed='1", "overrides: .* Write KEY=VALUE with spaces"),
    ],
)
def test_a_fault_is_one_line(override, message):
    with pytest.raises(ConfigError, match=message) as fault:
        settings.write(settings.overridden(f"seed=5 {override}", CORA), Path(), print)
    assert "\n" not in str(fault.value)


def test_a_broken_file_that_is_to_be_changed_is_one_line():
    for text, message in (
        ("seed: [1\npresets: []\n", "^params.yaml:2: expected"),
        ("seed: 1\npresets: []\nseed: 2\n", "^params.yaml:3: the key 'seed'"),
        ("- seed\n", "^params.yaml: expected a mapping"),
    ):
        Path("params.yaml").write_text(text)
        with pytest.raises(ConfigError, match=message) as fault:
            write("shards.thumbnail=64", preset=None)
        assert "\n" not in str(fault.value)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_path")
def test_a_preset_that_params_does_not_name_is_added_if_a_stage_belongs_to_the_run(root):
    shutil.copy(root / "dvc.yaml", "dvc.yaml")
    before = snapshot()
    lines = []
    add = partial(settings.add_names, lambda: settings.named("scenes", "dive"), lines.append)

    def nothing(graph):
        return graph.writing(Path("models/scenes/other"))

    with pytest.raises(ConfigError, match="no stage belongs to this run"):
        add(partial(flows._selected, nothing))
    assert snapshot() == before
    add(flows.read_graph)
    after = snapshot()
    line = "presets: [vsepp, swamp, maxmatch, cora"
    assert after == before | {
        "params.yaml": before["params.yaml"].replace(f"{line}]", f"{line}, dive]")
    }
    assert yaml.safe_load(after["params.yaml"])["presets"][-1] == "dive"
    assert settings.named("scenes", "dive") == [] and "params.yaml: presets" in lines[-1]
