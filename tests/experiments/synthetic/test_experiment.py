"""An experiment on synthetic pairs: its results, its kept runs, and its faults in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from manymatch import cli
from manymatch.config.layout import Layout
from manymatch.experiments.engine import perform
from manymatch.experiments.experiment import Options
from manymatch.experiments.kinds import experiment_of_file
from manymatch.experiments.plan import points
from manymatch.experiments.synthetic.experiment import SyntheticPairs, SyntheticPlan
from manymatch.experiments.synthetic.run import RunSettings
from manymatch.system.errors import ConfigError

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "experiments").glob("synthetic-*.yaml"))
SMALL: dict[str, Any] = {
    "experiment": "synthetic",
    "set": {"epochs": 1, "n_classes": 20, "queue": 130},
    "points": {"contrastive": {"weight": 0.0}, "SwAMP": {}},
    "seeds": [0],
    "baseline": "contrastive",
}


def small(
    folder: Path, name: str = "small", jobs: int | None = None, **change: Any
) -> SyntheticPairs:
    plan = SyntheticPlan.model_validate(SMALL | change)
    return SyntheticPairs(name, plan, Layout(folder), Options(jobs=jobs))


def record(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def settings_in(path: Path) -> dict[str, RunSettings]:
    """The settings of the points of a file, by label."""
    experiment = experiment_of_file(path, Layout(ROOT))
    return {point.label: experiment.settings(point, 0) for point in points(experiment.plan)}


def test_every_point_has_a_run_of_every_seed(worked: list[str], tmp_path: Path) -> None:
    written = record(perform(small(tmp_path, seeds=[0, 3])))
    assert worked == [f"{p}, seed {s}" for p in ("contrastive", "SwAMP") for s in (0, 3)]
    assert [point["label"] for point in written["points"]] == ["contrastive", "SwAMP"]
    assert [run["seed"] for run in written["points"][1]["runs"]] == [0, 3]
    assert written["points"][1]["settings"]["n_classes"] == 20
    assert (written["name"], written["baseline"]) == ("small", "contrastive")


def test_finished_runs_are_not_done_again(worked: list[str], tmp_path: Path) -> None:
    first = perform(small(tmp_path)).read_text()
    worked.clear()
    assert perform(small(tmp_path)).read_text() == first
    assert worked == []
    more = {"SwAMP too": {}, "hard": {"assignment": "hard"}}
    perform(small(tmp_path, "other", points=more, baseline=None))
    assert worked == ["hard, seed 0"]


@pytest.mark.slow
def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    experiment = small(tmp_path, jobs=2)
    written = record(perform(experiment))
    for point, planned in zip(written["points"], points(experiment.plan), strict=True):
        here = experiment.run(experiment.settings(planned, 0), 0, tmp_path)
        assert {kind: point["runs"][0][kind] for kind in ("pair", "class", "epoch")} == {
            kind: here[kind] for kind in ("pair", "class", "epoch")
        }


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


def test_the_command_prints_the_table(
    worked: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    monkeypatch.setattr(sys, "argv", ["manymatch", "experiment", "small.yaml", "--seeds", "4"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    message = capsys.readouterr().out
    assert worked == ["contrastive, seed 4", "SwAMP, seed 4"]
    assert "| SwAMP |" in message and "SwAMP against contrastive, pair R@1" in message
    assert (tmp_path / "reports" / "synthetic" / "small.json").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("small.yaml --seeds one", "seeds.0"),
        ("small.yaml --dataset coco", "--dataset"),
        ("small.yaml --device cpu", "--device"),
        ("small.yaml --keep", "--keep"),
    ],
)
def test_faults_of_the_command_are_one_line(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").touch()
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    monkeypatch.setattr(sys, "argv", ["manymatch", "experiment", *words.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line
