"""Experiments beside a workspace that nobody disturbs, in a repository with one stage."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from manymatch.cli.dvc_experiments import _changes, experiments_table
from manymatch.util.errors import ConfigError
from pipelines import experiment
from pipelines.experiment import KEPT

PIPELINE = """
stages:
  double:
    cmd: >-
      awk '{print 2 * $2}' params.yaml > twice; mkdir -p reports/metrics/d;
      sed 's/n: \\(.*\\)/{"rsum": \\100}/' params.yaml > reports/metrics/d/p.json
    params: [n]
    outs: [twice]
    metrics: [{reports/metrics/d/p.json: {cache: false}}]
"""
COMMIT = "git -c user.name=T -c user.email=t@t commit -qm A"
KILLED = """
import os, sys
from pathlib import Path
from pipelines import experiment
with experiment.opened("key", print):
    Path("models/.checkpoints/last").touch()
    os.kill(os.getpid(), 9)
"""


def call(*command):
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory, warm_path):
    """A committed project, in which the stage has run."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "dvc.yaml").write_text(PIPELINE)
    (folder / "params.yaml").write_text("n: 1\n")
    (folder / ".gitignore").write_text("/models\n/data\n/twice\n")
    with contextlib.chdir(folder):
        for command in ("git init -q", "dvc init -q", "dvc repro -q", "git add .", COMMIT):
            call(*command.split())
    return folder


@pytest.fixture
def workspace(made, tmp_path, monkeypatch):
    """A copy of the project."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def double(made, number):
    (made.folder / "params.yaml").write_text(f"n: {number}\n")
    with contextlib.chdir(made.folder):
        call("dvc", "repro", "-q")


@pytest.mark.slow
def test_experiments_side_by_side_leave_the_workspace_alone(workspace):
    with experiment.opened("key", pytest.fail) as one, experiment.opened("key", pytest.fail) as two:
        assert one.folder != two.folder and Path.cwd() == two.folder
        two.checkout(["double"])
        assert Path("twice").read_text() == "2\n"
        double(one, 2)
        double(two, 3)
        with contextlib.chdir(one.folder):
            assert one.save("same") == "same"
        assert two.save("same") == "same-2"
    assert Path.cwd() == workspace
    assert call("git", "status", "--porcelain") == "" and Path("twice").read_text() == "2\n"
    rows = [[cell.plain for cell in row] for row in experiments_table().rows]
    assert rows[0] == ["workspace", "100.0", "-"] and rows[1][1:] == ["100.0", "-"]
    assert sorted(rows[2:]) == [["same", "200.0", "n 2"], ["same-2", "300.0", "n 3"]]
    metrics = Path("reports/metrics/d/p.json")
    for faulty in ("[1]", '{"rsum": "high"}'):
        metrics.write_text(faulty)
        assert [cell.plain for cell in experiments_table().rows[0]] == ["workspace", "-", "-"]
    call("git", "checkout", metrics)
    assert len(call("git", "worktree", "list").splitlines()) == 1
    assert set(call("dvc", "exp", "list", "--name-only").split()) >= {"same", "same-2"}
    for name, text in (("same", "4\n"), ("same-2", "6\n")):
        call("dvc", "exp", "apply", name)
        assert Path("twice").read_text() == text
        assert call("dvc", "status") == "Data and pipelines are up to date.\n"


def test_a_preset_that_comes_or_goes_is_one_change():
    own = {"presets": "a, c", "d/a seed": "1", "d/a lr": "2", "d/c seed": "0", "d/c lr": "1"}
    usual = {"presets": "a, b", "d/a seed": "1", "d/a lr": "1", "d/b seed": "0", "d/b lr": "1"}
    changes = [*_changes(own, usual)]
    assert changes == ["with d/c", "without d/b", "presets a, c", "d/a lr 2"]


@pytest.mark.slow
def test_changes_that_are_not_committed_are_part_of_the_experiment(workspace):
    Path("params.yaml").write_text("n: 5\n")
    Path("new").touch()
    before = call("git", "status", "--porcelain")
    lines = []
    with experiment.opened("key", lines.append) as made:
        assert Path("params.yaml").read_text() == "n: 5\n" and Path("new").is_file()
        assert made.save("a..b/dirty 1.lock") == "a-b-dirty-1-lock"
    assert "new" in lines[0] and "params.yaml" in lines[0]
    assert call("git", "status", "--porcelain") == before
    saved = call("git", "for-each-ref", "--format=%(objectname)", "refs/exps").strip()
    assert call("git", "diff", "--name-only", "HEAD", saved).split() == ["new", "params.yaml"]


@pytest.mark.slow
def test_the_next_run_removes_what_a_killed_run_left_and_continues_its_work(workspace, root):
    environment = os.environ | {"PYTHONPATH": str(root)}
    killed = subprocess.run([sys.executable, "-c", KILLED], env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert len(call("git", "worktree", "list").splitlines()) == 2
    with experiment.opened("key", pytest.fail) as made:
        assert Path("models/.checkpoints/last").is_file()
        with contextlib.chdir(workspace):
            assert experiment.remove_left() == [] and made.folder.is_dir()
        made.save("finished")
    assert not list((workspace / KEPT[0] / ".overrides").iterdir())


@pytest.mark.parametrize("commands", [[], ["git init -q"]])
def test_without_a_commit_there_is_no_experiment(tmp_path, monkeypatch, commands):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for command in commands:
        call(*command.split())
    with (
        pytest.raises(ConfigError, match="needs a git repository with a commit"),
        experiment.opened("key", print),
    ):
        pass
