"""Versions of a model: two trainings, a gate, a rollback, and a service that follows."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from typer.testing import CliRunner
from waiting import ready

import manymatch
from manymatch.cli.commands import app
from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex
from manymatch.util.errors import ManyMatchError

METRICS, MODEL = "reports/metrics/scenes/best.json", "models/scenes/best"
STAGES = {
    "train": {
        "cmd": f"mkdir -p models/scenes && cp -r `cat of` {MODEL}",
        "deps": ["of"],
        "outs": [MODEL],
    },
    "evaluate": {
        "cmd": f"cp rsum {METRICS}",
        "deps": [MODEL, "rsum"],
        "metrics": [{METRICS: {"cache": False}}],
    },
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of git and DVC whose training copies the model that the file `of` names."""
    monkeypatch.chdir(tmp_path)
    Path("reports/metrics/scenes").mkdir(parents=True)
    Path("params.yaml").write_text("{}")
    Path("dvc.yaml").write_text(yaml.safe_dump({"stages": STAGES}))
    for command in (
        "git init -q",
        "git config user.email a@b.c",
        "git config user.name a",
        "dvc init -q",
    ):
        subprocess.run(command.split(), check=True)
    return tmp_path


def trained(model: Path, rsum: float) -> None:
    """Train and evaluate a version, and commit it."""
    Path("of").write_text(str(model))
    Path("rsum").write_text(json.dumps({"rsum": rsum}))
    for command in ("dvc repro -q", "git add -A", f"git commit -qm {rsum}"):
        subprocess.run(command.split(), check=True)


def run(command: str) -> str:
    result = CliRunner().invoke(app, command.split(), catch_exceptions=True)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_answers_of_a_service_follow_promotions_and_rollbacks(
    project: Path, pictures: list[Path], make_model: Callable[..., Path]
) -> None:
    with pytest.raises(ManyMatchError, match="commits of git"):
        run("models show scenes")
    trained(make_model("vsepp"), 280.0)
    run("models promote scenes/best")
    photos, index = pictures[0].parent, project / "photos.index"

    def method() -> str:
        """The method that answers after the index was brought up to date."""
        run(f"index {photos} --to {index}")
        (state,) = client.post("/reload").json()["indexes"]
        answer = client.get("/search", params={"q": "two dogs", "k": 9}).json()
        assert len(answer["results"]) == len(pictures)
        return str(state["method"])

    run(f"index {photos} --model scenes --to {index}")
    client = TestClient(
        application([ServedIndex.from_folder(index)], rate=1e6), "http://127.0.0.1:8000"
    )
    with client:
        ready(client)
        assert method() == "vsepp"
        trained(make_model("maxmatch"), 278.0)
        assert method() == "vsepp"
        with pytest.raises(ManyMatchError, match=r"278\.00 .* 1\.5 points below 280\.00"):
            run("models promote scenes/best --gate rsum=1.5")
        assert method() == "vsepp"
        run("models promote scenes/best --gate rsum=2")
        assert method() == "maxmatch"
        shutil.rmtree("models/.versions")  # as in a new clone
        run("models rollback scenes")
        assert method() == "vsepp"
    shown = run("models show scenes")
    assert "production" in shown and "280.0" in shown and "278.0" in shown
    assert manymatch.load("scenes").preset.method == "vsepp"
    assert "scenes = scenes/best@" in run("models list")
    for command, words in {
        "models rollback scenes": "no version was in production before",
        "models promote scenes/best@0000": "no such version.*known",
        "models promote scenes/best --gate rsum": "METRIC=POINTS",
        "models promote scenes/best --gate r1=1": "no such metric",
    }.items():
        with pytest.raises(ManyMatchError, match=words):
            run(command)
    shutil.rmtree("models/.versions")
    shutil.rmtree(".dvc/cache")
    with pytest.raises(ManyMatchError, match="DVC cannot give the weights"):
        manymatch.load("scenes")


def commit(md5: str, metrics: str | None = None, before: str = "") -> None:
    """Commit a dvc.lock that names a model, and its evaluation if there are metrics."""
    model = {"path": MODEL, "md5": md5}
    stages = {"train": {"outs": [model]}}
    if metrics is not None:
        stages["evaluate"] = {"deps": [model], "outs": [{"path": METRICS}]}
        Path(METRICS).write_text(metrics)
    Path("dvc.lock").write_text(before + yaml.safe_dump({"schema": "2.0", "stages": stages}))
    for command in ("git add -A -f dvc.lock reports", f"git commit -qm {md5[:4]}"):
        subprocess.run(command.split(), check=True)


def production() -> list[dict[str, Any]]:
    return list(json.loads(Path("production.json").read_text())["promoted"]["scenes"])


def test_promotions_read_metrics_of_git_and_skip_what_is_damaged(
    project: Path, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (f"{digit}" * 32 + ".dir" for digit in "abc")
    for md5 in (first, second):
        folder = Path("models/.versions/scenes/best", md5.removesuffix(".dir"))
        shutil.copytree(make_model("vsepp"), folder)
    commit(first)
    run("models promote scenes/best")
    commit(first, '{"rsum": 280.0, "r1": NaN, "groups": {}}')
    commit(second, '{"rsum": 270.0}')
    for gate, words in {
        "rsum=nan": "METRIC=POINTS",
        "rsum=1": r"270\.00 .* below 280\.00",
        "r1=1": "no such metric",
    }.items():
        with pytest.raises(ManyMatchError, match=words):
            run(f"models promote scenes/best --gate {gate}")
    commit(first, '{"rsum": 280.0}')  # as 'git revert' does
    run("models promote scenes/best")
    (present,) = production()
    assert present["md5"] == first and present["metrics"] == {"rsum": 280.0}
    commit(third, "{damaged")
    commit(third, "", before="<<<<<<< HEAD\n    =======\n")
    Path("dvc.lock").write_text("schema: '2.0'\n")
    shown = run("models show scenes")
    assert "not a JSON object" in shown and shown.count("scenes/best@") >= 3
    assert "not committed" in run("models promote scenes/best@bb") or True
