"""Versions of a model: two trainings, a gate, a rollback, and a service that follows."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm_commands
import yaml
from command_line import printed
from starlette.testclient import TestClient
from typer.testing import CliRunner
from waiting import ready

import manymatch
from manymatch.cli.commands import app
from manymatch.model.places import packaged, resolve_model
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
def project(tmp_path, warm_path, monkeypatch):
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


def trained(model, rsum):
    """Train and evaluate a version, and commit it."""
    Path("of").write_text(str(model))
    Path("rsum").write_text(json.dumps({"rsum": rsum}))
    for command in ("dvc repro -q", "git add -A", f"git commit -qm {rsum}"):
        subprocess.run(command.split(), check=True)


def run(command):
    return printed(*command.split())


@pytest.mark.slow
def test_the_answers_of_a_service_follow_promotions_and_rollbacks(
    project, pictures, make_model, monkeypatch
):
    trained(make_model("vsepp"), 280.0)
    run("models promote scenes/best")
    photos, index = pictures[0].parent, project / "photos.index"

    def method():
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
        trained(make_model("maxmatch"), 278.0)
        assert method() == "vsepp"
        with pytest.raises(ManyMatchError, match=r"278\.00 .* 1\.5 points below 280\.00"):
            run("models promote scenes/best --gate rsum=1.5")
        run("models promote scenes/best --gate rsum=2")
        assert method() == "maxmatch"
        shutil.rmtree("models/.versions")  # as in a new clone
        run("models rollback scenes")
        assert method() == "vsepp"
    shown = run("models show scenes")
    assert "production" in shown and "280.0" in shown and "278.0" in shown
    assert manymatch.load("scenes").preset.method == "vsepp"
    (weights,) = Path("models/.versions/scenes/best", production()[-1]["md5"][:-4]).glob("*.safet*")
    weights.write_bytes(bytes(weights.stat().st_size))
    assert manymatch.load("scenes").preset.method == "vsepp"  # got anew
    shutil.rmtree("models/.versions")
    assert "scenes = scenes/best@" in run("models list")
    assert not Path("models/.versions").exists()
    fetch = "from manymatch.model.places import resolve_model; print(resolve_model('scenes'))"
    both = [subprocess.Popen([warm_commands.spawn(), "-c", fetch]) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    for command, words in {
        "models rollback scenes": "no version was in production before",
        "models promote scenes/best@0000": "no such version.*known",
        "models promote scenes/best@": "no such version.*known",
    }.items():
        with pytest.raises(ManyMatchError, match=words):
            run(command)
    known = Path("production.json").read_text()

    def sleep(_):
        if "scenes" not in Path("production.json").read_text():
            raise KeyboardInterrupt
        Path("production.json").write_text('{"promoted": {}}')

    monkeypatch.setattr("manymatch.cli.search.time", SimpleNamespace(sleep=sleep))
    watch = f"index {photos} --model scenes --to {index} --watch"
    assert "scenes is no longer in" in CliRunner().invoke(app, watch.split()).output
    Path("production.json").write_text(known)
    shutil.rmtree("models/.versions")
    shutil.rmtree(".dvc/cache")
    with pytest.raises(ManyMatchError, match="DVC cannot give the weights"):
        manymatch.load("scenes")


def production():
    return list(json.loads(Path("production.json").read_text())["promoted"]["scenes"])


def commit(digit, metrics=None):
    """Commit a dvc.lock that names a model, and the model's evaluation if there are metrics."""
    model = {"path": MODEL, "md5": f"{digit * 32}.dir"}
    stages = {"train": {"outs": [model]}}
    if metrics is not None:
        stages["evaluate"] = {"deps": [{**model}], "outs": [{"path": METRICS}]}
        Path(METRICS).write_text(metrics)
    Path("dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}))
    subprocess.run("git add -A && git commit -qm x", shell=True, check=True)


def test_promotions_read_the_commits_and_leave_out_what_is_damaged(
    project, make_model, monkeypatch
):
    model = make_model("vsepp")
    Path(".gitignore").write_text("models\nproduction.json\nshared.json\nclone")
    for digit in "ab":
        shutil.copytree(model, Path("models/.versions/scenes/best", digit * 32))
    commit("a")
    run("models promote scenes/best")
    commit("a", '{"rsum": 280, "r1": NaN, "groups": {}}')
    commit("b", '{"rsum": 270.0}')
    for gate, words in {
        "rsum=nan": "METRIC=POINTS",
        "rsum=1": r"270\.00 .* below 280\.00",
        "r1=1": "no such metric",
    }.items():
        with pytest.raises(ManyMatchError, match=words):
            run(f"models promote scenes/best --gate {gate}")
    commit("a", '{"rsum": 280}')  # as 'git revert' does
    with Path("dvc.lock").open("a") as lock:
        lock.write("# changed")
    assert "not committed" in run("models promote scenes/best --gate rsum=0")
    Path("production.json").rename("shared.json")
    Path("production.json").symlink_to("shared.json")  # that several checkouts share
    run("models promote scenes/best")
    assert Path("production.json").is_symlink()
    (present,) = production()
    assert present["md5"].startswith("aa") and present["metrics"] == {"rsum": 280}
    subprocess.run(f"git clone -q --depth 1 file://{project} clone".split(), check=True)
    with monkeypatch.context() as inside:
        inside.chdir("clone")
        assert "git fetch --unshallow" in run("models show scenes")
    commit("c", "{damaged")
    Path("dvc.lock").write_text(f"<<<<<<< HEAD\n  train:\n  - {MODEL}\n=======\n")
    subprocess.run(["git", "commit", "-qam", "conflict"], check=True)
    shown = run("models show scenes")
    assert shown.count("scenes/best@") == 4
    assert "no metrics" in shown and "dvc.lock cannot be read" in shown
    Path("models/.versions/scenes/best", "a" * 32, "link").symlink_to("nowhere")
    assert "scenes = scenes/best@aaaaaaaa" in run("models list")
    Path("production.json").write_text("")
    with pytest.raises(ManyMatchError, match="remove it and promote again"):
        run("models list")
    for name, folder in packaged().items():
        assert resolve_model(name) == folder
