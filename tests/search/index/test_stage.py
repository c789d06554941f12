"""The stage `index` of DVC."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workspace import Workspace, stages_run

from manymatch import Index
from manymatch.cli import commands


@pytest.mark.slow
def test_the_stage_makes_an_index_and_joins_its_parts(
    finished: Workspace,
    new_workspace: Callable[[], Workspace],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workspace = new_workspace()
    finished.run("cp", "-r", "data", "models", "dvc.lock", str(workspace.folder))
    monkeypatch.chdir(workspace.folder)
    source, model = 'my "shards" & $(touch made); touch made', "scenes/vsepp"
    shutil.copytree("data/shards/scenes/lite0", source)
    workspace.edit("params.yaml", {"indexes": {"mine": {"source": source, "model": model}}})
    target = "data/indexes/mine"
    words = ["index", "--name", "mine", "--part"]
    for part in ("1/2", "2/2"):
        CliRunner().invoke(commands.app, [*words, part], catch_exceptions=False)
    assert len(list(Path("data/parts/indexes/mine").iterdir())) == 2
    output = workspace.run("dvc", "repro", "--single-item", "code", "index@mine")
    assert stages_run(output) == ["code", "index@mine"] and ", 0 embedded" in output
    assert not Path("made").exists()
    answer = Index.open(target).search("two dogs")
    assert answer.exact and len(answer.results) == 20
    assert not stages_run(workspace.run("dvc", "repro", "--single-item", "index@mine"))
    assert not list(Path("data/indexes").glob("*.partial"))
