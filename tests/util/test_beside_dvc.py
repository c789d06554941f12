"""A stage of `dvc repro` after a `dvc repro` that was killed."""

import signal

import pytest

pytestmark = pytest.mark.slow


TRAIN = ("dvc", "repro", "--single-item", "train@scenes-vsepp")


@pytest.fixture(scope="module")
def prepared(finished, new_workspace):
    """Makes workspaces with data; their training is long enough to end in the midst of it."""

    def make():
        workspace = new_workspace()
        workspace.copy_data_from(finished)
        workspace.edit("presets/scenes/vsepp.yaml", {"training.epochs": 30})
        return workspace

    return make


def test_after_kills_the_next_repro_ends_with_the_same_model(prepared):
    workspace, whole = prepared(), prepared()
    whole.run("manymatch", "train", "scenes", "vsepp")
    expected = trained(whole.folder)
    for sent, line in ((signal.SIGKILL, "epoch 2/30"), (signal.SIGTERM, "resuming after epoch")):
        process = workspace.start(*TRAIN)
        wait_for(line, process)
        (dvc,) = workspace.processes("dvc", "repro")
        dvc.send_signal(sent)
        process.wait()
        process.stdout.close()
    assert "resuming after epoch" in workspace.run(*TRAIN)
    assert trained(workspace.folder) == expected and len(expected) > 5


def wait_for(text, process):
    """Read the output up to a line that contains `text`."""
    assert any(text in line for line in process.stdout), f"{text} was never said"


def trained(folder):
    paths = [folder / "models/scenes/vsepp", folder / "reports/curves/scenes/vsepp"]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for root in paths
        for path in root.rglob("*")
        if path.is_file()
    }
