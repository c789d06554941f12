"""Clones of a small repository that share a remote."""

import pytest
import yaml
from dvc.repo import Repo
from workspace import Workspace

STAGES = {
    "double": {"cmd": "sh double.sh", "deps": ["double.sh", "number"], "outs": ["twice"]},
    "show": {"cmd": "cp twice shown", "deps": ["twice"], "outs": [{"shown": {"cache": False}}]},
}
CONFIG = """[core]
    analytics = false
    remote = shared
['remote "shared"']
    url = {}
"""
DOUBLE = "echo computing; echo $((2 * $(cat number))) > twice\n"


@pytest.fixture
def remote(tmp_path):
    """The folder that the clones share; the first push makes it."""
    return tmp_path / "remote"


@pytest.fixture
def new_clone(tmp_path, remote, warm_path):
    """Make clones of a repository whose first stage doubles a number."""
    origin = Workspace(tmp_path / "origin")
    origin.folder.mkdir()
    (origin.folder / "number").write_text("21\n")
    (origin.folder / "double.sh").write_text(DOUBLE)
    (origin.folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": STAGES}))
    origin.run("git", "init", "-q")
    Repo.init(str(origin.folder))
    (origin.folder / ".dvc" / "config").write_text(CONFIG.format(remote))
    origin.commit("Start")

    def clone(name):
        origin.run("git", "clone", "-q", ".", str(tmp_path / name))
        return Workspace(tmp_path / name)

    return clone
