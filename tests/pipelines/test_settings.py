"""Overrides go where they belong, all or none, and are said."""

from __future__ import annotations

import multiprocessing
import shutil
from functools import partial
from pathlib import Path

import pytest
import yaml

from manymatch.config.preset import read_preset
from manymatch.system.errors import ConfigError
from pipelines import flows, settings
from pipelines.graph import Graph, Stage

CORA = Path("presets/scenes/cora.yaml")


@pytest.fixture(autouse=True)
def checkout(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of the checkout, to be changed."""
    shutil.copy(root / "params.yaml", tmp_path)
    for name in ("presets", "experiments"):
        shutil.copytree(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settle(*overrides: str, preset: Path | None = CORA) -> list[str]:
    """What is said when the overrides are written."""
    lines: list[str] = []
    with settings.settled(lambda: settings.overridden(overrides, preset), lines.append):
        pass
    return lines


def snapshot() -> dict[str, str]:
    files = [Path("params.yaml"), *Path("presets").rglob("*.yaml")]
    return {str(path): path.read_text() for path in files}


@pytest.mark.slow
def test_only_the_overridden_lines_change() -> None:
    before = snapshot()
    message = settle("training.epochs=2", "model.last_activation=true", "shards.thumbnail=64")
    changed = {name: text for name, text in snapshot().items() if text != before[name]}
    assert set(changed) == {str(CORA), "params.yaml"}
    for name, text in changed.items():
        old, new = before[name].splitlines(), text.splitlines()
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == (2 if name == str(CORA) else 1)
    assert read_preset(CORA).training.epochs == 2
    assert message[0] == (
        "presets/scenes/cora.yaml: training.epochs is now 2 (was 8) and stays so; "
        "'git checkout presets/scenes/cora.yaml' reverts the file"
    )
    assert len(message) == 3


def test_a_changed_preset_is_no_longer_reproduced() -> None:
    path = Path("presets/coco/maxmatch_butd_bigru.yaml")
    (epochs,) = settings.overridden(["training.epochs=1"], path)
    (seed,) = settings.overridden(["seed=5"], path)
    assert "setting: reproduced" in settings._changed(path, [seed])
    assert "setting: small-scale" in settings._changed(path, [seed, epochs])


def test_every_settings_file_survives_reading_and_writing(root: Path) -> None:
    for name, text in snapshot().items():
        assert settings._changed(Path(name), []) == text


def test_a_file_may_be_named_and_the_same_value_changes_nothing() -> None:
    before = snapshot()
    assert settle("presets/scenes/cora.yaml:training.epochs=8", preset=None) == []
    assert snapshot() == before


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
        pytest.param("model.sise=2", "sise", marks=pytest.mark.slow),
    ],
)
def test_a_fault_is_one_line_and_nothing_is_written(override: str, message: str) -> None:
    before = snapshot()
    with pytest.raises(ConfigError, match=message) as fault:
        settle("seed=5", override)
    assert "\n" not in str(fault.value)
    assert snapshot() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: [1\npresets: []\n", r"^params.yaml:2: expected"),
        ("seed: 1\npresets: []\nseed: 2\n", "^params.yaml:3: the key 'seed'"),
        ("- seed\n", r"^params.yaml: expected a mapping"),
    ],
)
def test_a_broken_file_that_is_to_be_changed_is_one_line(text: str, message: str) -> None:
    Path("params.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message) as fault:
        settle("shards.thumbnail=64", preset=None)
    assert "\n" not in str(fault.value)


@pytest.mark.slow
def test_a_change_that_leaves_a_run_nothing_to_do_is_not_written(root: Path) -> None:
    shutil.copy(root / "dvc.yaml", "dvc.yaml")
    before = snapshot()
    changes = settings.overridden(["presets=[vsepp]"])

    def trained(graph: Graph) -> list[Stage]:
        return graph.writing(Path("models/scenes/cora"))

    selected = partial(flows._selected, trained)
    with (
        pytest.raises(ConfigError, match="no stage belongs to this run"),
        settings.settled(lambda: changes, [].append, selected),
    ):
        pass
    assert snapshot() == before


@pytest.mark.slow
def test_a_preset_that_params_does_not_name_is_added() -> None:
    assert settings.named("scenes", "cora") == []
    lines: list[str] = []
    with settings.settled(lambda: settings.named("scenes", "dive"), lines.append):
        pass
    methods = yaml.safe_load(Path("params.yaml").read_text())["presets"]
    assert methods == ["vsepp", "swamp", "maxmatch", "cora", "dive"]
    assert "params.yaml: presets is now" in lines[0]
    assert settings.named("scenes", "dive") == []


@pytest.mark.slow
def test_a_run_that_changes_settings_has_the_checkout_to_itself() -> None:
    context = multiprocessing.get_context("spawn")
    heard, release = context.Queue(), context.Event()
    with settings.settled(list, heard.put):
        other = context.Process(target=_change_in_turn, args=(heard, release))
        other.start()
        assert heard.get(timeout=60) == "waiting for other runs to end, to change settings"
        assert read_preset(CORA).training.epochs == 8
    assert "training.epochs is now 2" in heard.get(timeout=60)
    release.set()
    other.join(60)
    assert other.exitcode == 0 and read_preset(CORA).training.epochs == 2


def _change_in_turn(heard, release) -> None:  # type: ignore[no-untyped-def]
    changes = settings.overridden(["training.epochs=2"], CORA)
    with settings.settled(lambda: changes, heard.put):
        release.wait(60)
