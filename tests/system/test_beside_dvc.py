"""A stage of `dvc repro` beside the same stage by hand, or after a `dvc repro` that was killed."""

import signal
from collections.abc import Callable

import pytest
from workspace import Workspace

pytestmark = pytest.mark.slow


TRAIN = ("dvc", "repro", "--single-item", "train@scenes-vsepp")
New = Callable[[], Workspace]


@pytest.fixture(scope="module")
def prepared(finished, new_workspace):
    """Makes workspaces with data; their training is long enough to end in the midst of it."""

    def make():
        workspace = new_workspace()
        workspace.copy_data_from(finished)
        workspace.edit("presets/scenes/vsepp.yaml", {"training.epochs": 60})
        return workspace

    return make


@pytest.fixture(scope="module")
def undisturbed(prepared):
    workspace = prepared()
    workspace.run(*TRAIN)
    return trained(workspace.folder)


def test_after_kills_the_next_repro_ends_with_the_same_model(prepared, undisturbed):
    workspace = prepared()
    for sent, line in ((signal.SIGKILL, "epoch 2/60"), (signal.SIGTERM, "resuming after epoch")):
        process = workspace.start(*TRAIN)
        wait_for(line, process)
        process.send_signal(sent)
        process.wait()
        process.stdout.close()
    assert "resuming after epoch" in workspace.run(*TRAIN)
    assert trained(workspace.folder) == undisturbed and len(undisturbed) > 5


def wait_for(text, process):
    """Read the output up to a line that contains `text`."""
    assert process.stdout is not None
    assert any(text in line for line in process.stdout), f"{text} was never said"


def test_dvc_takes_over_what_a_stage_by_hand_finishes(prepared, undisturbed):
    """DVC removes the outputs of the stage at its start, while the other process trains."""
    workspace = prepared()
    process = workspace.start("manymatch", "train", "scenes", "vsepp")
    wait_for("epoch 2/60", process)
    output = workspace.run(*TRAIN)
    process.communicate()
    assert process.returncode == 0
    assert f"waiting for process {process.pid}" in output and "nothing is left" in output
    assert trained(workspace.folder) == undisturbed


def trained(folder):
    paths = [folder / "models/scenes/vsepp", folder / "reports/curves/scenes/vsepp"]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for root in paths
        for path in root.rglob("*")
        if path.is_file()
    }
