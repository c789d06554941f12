"""Fixtures that several rooms share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Workspace, stages_run

ROOT = Path(__file__).parents[1]
TINY = {"train": 48, "validation": 16, "test": 16}
SMALL_MODEL = {"training.epochs": 2, "training.images_per_batch": 16}
CONFIGURED = ("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore", "presets", "ablations")
SHOWN = (*CONFIGURED, "src", "README.md")


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
        folder = tmp_path_factory.mktemp("workspace")
        for name in SHOWN:
            source, target = root / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        (folder / ".dvc").mkdir()
        for kept in (root / "reports").glob("*/.gitkeep"):
            (folder / "reports" / kept.parent.name).mkdir(parents=True)
            (folder / "reports" / kept.parent.name / ".gitkeep").touch()
        shutil.copy(root / ".dvc" / "config", folder / ".dvc" / "config")
        workspace = Workspace(folder)
        workspace.run("git", "init", "-q")
        runs = {"datasets": ["scenes"], "presets": ["vsepp", "cora"], "features": ["lite0"]}
        workspace.edit("params.yaml", {**runs, "ensembles": [], "ablations": {}})
        workspace.edit("params.yaml", {f"sources.scenes.{key}": n for key, n in TINY.items()})
        workspace.edit("params.yaml", {"shards.images_per_shard": 16, "evaluation.samples": 3})
        for preset in ("vsepp", "cora"):
            workspace.edit(f"presets/scenes/{preset}.yaml", SMALL_MODEL)
        workspace.commit("Start")
        return workspace

    return make


@pytest.fixture(scope="session")
def finished(new_workspace: Callable[[], Workspace]) -> Workspace:
    """A workspace after one undisturbed `dvc repro`, committed."""
    workspace = new_workspace()
    output = workspace.run("dvc", "repro")
    assert len(stages_run(output)) == 11
    workspace.commit("Results")
    return workspace
