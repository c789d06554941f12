"""An experiment on synthetic pairs: its results, its kept runs, and its faults in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from manymatch.cli import commands
from manymatch.config.layout import Layout
from manymatch.experiments.grid import experiment_of_file, points
from manymatch.experiments.synthetic import RunSettings
from manymatch.util.errors import ConfigError

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "experiments").glob("synthetic-*.yaml"))
SMALL: dict[str, Any] = {
    "experiment": "synthetic",
    "set": {"epochs": 1, "n_classes": 20, "queue": 130},
    "points": {"contrastive": {"weight": 0.0}, "SwAMP": {}},
    "seeds": [0],
    "baseline": "contrastive",
}


def settings_in(path: Path) -> dict[str, RunSettings]:
    """The settings of the points of a file, by label."""
    experiment = experiment_of_file(path, Layout(ROOT))
    return {point.label: experiment.settings(point, 0) for point in points(experiment.plan)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_are_sound_and_say_how_they_are_run(path: Path) -> None:
    settings = settings_in(path)
    assert len({str(setting) for setting in settings.values()}) == len(settings)
    assert f"#   manymatch experiment experiments/{path.name}\n" in path.read_text()
    assert experiment_of_file(path, Layout(ROOT)).plan.about


def test_the_papers_comparison() -> None:
    experiment = experiment_of_file(ROOT / "experiments" / "synthetic-swamp.yaml", Layout(ROOT))
    assert (experiment.name, experiment.kind) == ("swamp", "synthetic")
    embedded = experiment.plan
    assert len(embedded.seeds) == 5 and embedded.baseline == "contrastive"
    assert embedded.published == {
        "contrastive": {"pair": 84.10, "class": 91.60},
        "SwAMP": {"pair": 90.80, "class": 95.70},
    }
    settings = settings_in(ROOT / "experiments" / "synthetic-swamp.yaml")
    assert settings["contrastive"].weight == 0.0
    assert settings["SwAMP"].model_copy(update={"weight": 0.0}) == settings["contrastive"]


def test_both_settings_are_solved_both_ways() -> None:
    settings = settings_in(ROOT / "experiments" / "synthetic-convergence.yaml")
    values = {
        (setting.tau, setting.eta, setting.rounds, setting.tolerance)
        for setting in settings.values()
    }
    assert values == {
        (tau, eta, *end)
        for tau, eta in ((0.01, 20.0), (0.025, 5.0))
        for end in ((3, None), (None, 1e-4))
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"points": {"a": {"taw": 1}}, "baseline": None},
            "point 'a': settings: unknown key 'taw'",
        ),
        ({"baseline": "contrastiv"}, "no point is called 'contrastiv'; did you mean 'contrastive'"),
        ({"published": {"SwAM": {"pair": 1.0}}}, "no point is called 'SwAM'; did you mean"),
        ({"published": {"SwAMP": {"pairs": 1.0}}}, "published.SwAMP"),
        ({"points": {"a": {"tolerance": 1e-4}}, "baseline": None}, "either rounds or tolerance"),
    ],
)
def test_faults_are_one_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(SMALL | change))
    with pytest.raises(ConfigError) as fault:
        experiment_of_file(path, Layout(tmp_path)).check()
    assert message in str(fault.value) and "\n" not in str(fault.value)


@pytest.fixture
def command(
    worked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., object]:
    """Runs `manymatch experiment small.yaml` with more words; returns the exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))

    def run(*words: str) -> object:
        monkeypatch.setattr(sys, "argv", ["manymatch", "experiment", "small.yaml", *words])
        with pytest.raises(SystemExit) as ended:
            commands.main()
        return ended.value.code

    return run


def test_the_command_prints_the_table(
    command: Callable[..., object], worked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not command("--seeds", "4")
    message = capsys.readouterr().out
    assert worked == ["contrastive, seed 4", "SwAMP, seed 4"]
    assert "SwAMP " in message and "SwAMP against contrastive, pair R@1" in message
    written = json.loads(Path("reports/synthetic/small.json").read_text())
    assert [point["label"] for point in written["points"]] == ["contrastive", "SwAMP"]
    assert written["points"][1]["settings"]["n_classes"] == 20
    assert written["points"][1]["runs"][0]["seed"] == 4
    assert (written["name"], written["baseline"]) == ("small", "contrastive")


@pytest.mark.parametrize(
    "words", [("--seeds", "one"), ("--dataset", "coco"), ("--device", "cpu"), ("--keep",)]
)
def test_faults_of_the_command_are_one_line(
    command: Callable[..., object], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and words[0].strip("-") in line
