"""An experiment as a command: what it writes, what it keeps, and its faults as one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from one_by_one import run_one_by_one

from manymatch import cli
from manymatch.config.layout import Layout
from manymatch.experiments.synthetic.experiment import perform
from manymatch.experiments.synthetic.plan import Experiment, read_experiment, run_settings
from manymatch.experiments.synthetic.run import run
from manymatch.system.errors import ConfigError

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "synthetic").glob("*.yaml"))
SMALL: dict[str, Any] = {
    "set": {"epochs": 1, "n_classes": 20, "queue": 130},
    "points": {"contrastive": {"weight": 0.0}, "SwAMP": {}},
    "seeds": [0],
    "baseline": "contrastive",
}


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return run_one_by_one(monkeypatch, "manymatch.experiments.synthetic.experiment.side_by_side")


def experiment(**change: Any) -> Experiment:
    return Experiment.model_validate(SMALL | change)


def record(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def test_every_point_has_a_run_of_every_seed(worked: list[str], tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    found = record(perform("small", experiment(seeds=[0, 3]), layout))
    assert worked == [f"{p}, seed {s}" for p in ("contrastive", "SwAMP") for s in (0, 3)]
    assert [point["label"] for point in found["points"]] == ["contrastive", "SwAMP"]
    assert [run["seed"] for run in found["points"][1]["runs"]] == [0, 3]
    assert found["points"][1]["settings"]["n_classes"] == 20
    assert (found["name"], found["baseline"]) == ("small", "contrastive")


def test_finished_runs_are_not_done_again(worked: list[str], tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    first = perform("small", experiment(), layout).read_text()
    worked.clear()
    assert perform("small", experiment(), layout).read_text() == first
    assert worked == []
    points = {"SwAMP too": {}, "hard": {"assignment": "hard"}}
    perform("other", experiment(points=points, baseline=None), layout)
    assert worked == ["hard, seed 0"]


def test_what_was_finished_before_an_interrupt_is_kept(
    worked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path)

    def interrupted(settings: Any, seed: int) -> Any:
        if settings.weight:
            raise KeyboardInterrupt
        return run(settings, seed)

    monkeypatch.setattr("manymatch.experiments.synthetic.run.run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        perform("small", experiment(), layout)
    assert not layout.synthetic("small").exists()
    monkeypatch.setattr("manymatch.experiments.synthetic.run.run", run)
    worked.clear()
    perform("small", experiment(), layout)
    assert worked == ["SwAMP, seed 0"]


@pytest.mark.slow
def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    small = experiment()
    found = record(perform("small", small, Layout(tmp_path), jobs=2))
    for point in found["points"]:
        here = run(run_settings(small)[point["label"]], 0)
        assert {kind: point["runs"][0][kind] for kind in ("pair", "class", "epoch")} == {
            kind: here[kind] for kind in ("pair", "class", "epoch")
        }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_are_sound_and_say_how_they_are_run(path: Path) -> None:
    found = read_experiment(path)
    settings = run_settings(found)
    assert len({str(each) for each in settings.values()}) == len(settings)
    command = "manymatch synthetic" + (f" --file synthetic/{path.name}" * (path.stem != "swamp"))
    assert f"#   {command}\n" in path.read_text()
    assert found.about


def test_the_default_is_the_papers_comparison() -> None:
    found = read_experiment(ROOT / "synthetic" / "swamp.yaml")
    assert len(found.seeds) == 5 and found.baseline == "contrastive"
    assert found.published == {
        "contrastive": {"pair": 84.10, "class": 91.60},
        "SwAMP": {"pair": 90.80, "class": 95.70},
    }
    settings = run_settings(found)
    assert settings["contrastive"].weight == 0.0
    assert settings["SwAMP"].model_copy(update={"weight": 0.0}) == settings["contrastive"]


def test_both_settings_are_solved_both_ways() -> None:
    settings = run_settings(read_experiment(ROOT / "synthetic" / "convergence.yaml"))
    found = {(each.tau, each.eta, each.rounds, each.tolerance) for each in settings.values()}
    assert found == {
        (tau, eta, *end)
        for tau, eta in ((0.01, 20.0), (0.025, 5.0))
        for end in ((3, None), (None, 1e-4))
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"points": {"a": {"taw": 1}}, "baseline": None}, "point 'a': unknown key 'taw'; did you"),
        ({"baseline": "contrastiv"}, "no point is called 'contrastiv'; did you mean 'contrastive'"),
        ({"published": {"SwAM": {"pair": 1.0}}}, "no point is called 'SwAM'; did you mean"),
        ({"published": {"SwAMP": {"pairs": 1.0}}}, "published.SwAMP"),
        ({"seeds": [0, 0]}, "a seed stands twice"),
        ({"seed": [0]}, "did you mean 'seeds'"),
        ({"points": {"a": {"tolerance": 1e-4}}, "baseline": None}, "either rounds or tolerance"),
    ],
)
def test_faults_are_one_line(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump(SMALL | change))
    with pytest.raises(ConfigError) as fault:
        run_settings(read_experiment(path))
    assert told in str(fault.value) and "\n" not in str(fault.value)


def test_the_command_prints_the_table(
    worked: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    monkeypatch.setattr(
        sys, "argv", ["manymatch", "synthetic", "--file", "small.yaml", "--seeds", "4"]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    told = capsys.readouterr().out
    assert worked == ["contrastive, seed 4", "SwAMP, seed 4"]
    assert "| SwAMP |" in told and "SwAMP against contrastive, pair R@1" in told
    assert Layout(tmp_path).synthetic("small").is_file()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "synthetic/swamp.yaml: no such file"),
        ("--file smal.yaml", "did you mean 'small.yaml'"),
        ("--file small.yaml --seeds one", "seeds.0"),
    ],
)
def test_faults_of_the_command_are_one_line(
    words: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL, sort_keys=False))
    monkeypatch.setattr(sys, "argv", ["manymatch", "synthetic", *words.split()])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and told in line
