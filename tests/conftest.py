"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Workspace, make_workspace, stages_run

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the real data sets; tests on it are skipped where it is not."""
    folder = Path(os.environ.get("MANYMATCH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data here: set MANYMATCH_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def new_workspace(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workspace]:
    """Make fresh tiny workspaces."""

    def make() -> Workspace:
        return make_workspace(root, tmp_path_factory.mktemp("workspace"))

    return make


@pytest.fixture(scope="session")
def finished(new_workspace: Callable[[], Workspace]) -> Workspace:
    """A workspace after one undisturbed `dvc repro`, committed."""
    workspace = new_workspace()
    output = workspace.run("dvc", "repro")
    assert len(stages_run(output)) == 11
    workspace.commit("Results")
    return workspace
