"""The stage `index` of DVC."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Workspace, stages_run


@pytest.mark.slow
def test_the_stage_makes_an_index_and_joins_its_parts(
    finished: Workspace, new_workspace: Callable[[], Workspace]
) -> None:
    workspace = new_workspace()
    finished.run("cp", "-r", "data", "models", "dvc.lock", str(workspace.folder))
    source, model = "data/shards/scenes/lite0", "scenes/vsepp"
    workspace.edit("params.yaml", {"indexes": {"mine": {"source": source, "model": model}}})
    assert stages_run(workspace.run("dvc", "repro", "code")) == ["code"]
    target = "data/indexes/mine"
    command = f"manymatch index {source} --model models/{model} --to {target} --part"
    workspace.run_all(f"{command} 1/2", f"{command} 2/2")
    assert len(list((workspace.folder / "data/parts/indexes/mine").iterdir())) == 2
    output = workspace.run("dvc", "repro", "-s", "index@mine")
    assert stages_run(output) == ["index@mine"] and ", 0 embedded" in output
    printed = workspace.run("manymatch", "search", target, "two dogs", "--json")
    # A slow machine first prints that the command loads.
    answer = json.loads(printed.splitlines()[-1])
    assert answer["exact"] and len(answer["results"]) == 20
    assert not stages_run(workspace.run("dvc", "repro", "-s", "index@mine"))
    assert not list(Path(workspace.folder, "data/indexes").glob("*.partial"))
