"""A stage of `dvc repro` after a `dvc repro` that was killed."""

import pytest

pytestmark = pytest.mark.slow


TRAIN = ("dvc", "repro", "--single-item", "train@scenes-vsepp")


@pytest.fixture
def prepared(finished, new_workspace):
    """Makes workspaces with data; their training is long enough to end in the midst of it."""

    def make():
        workspace = new_workspace()
        workspace.copy_data_from(finished)
        workspace.edit("presets/scenes/vsepp.yaml", {"training.epochs": 15})
        return workspace

    return make


def test_after_a_kill_the_next_repro_ends_with_the_same_model(prepared):
    killed, whole = prepared(), prepared()
    whole.run("manymatch", "train", "scenes", "vsepp")
    process = killed.start(*TRAIN)
    wait_for("epoch 2/15", process)
    (dvc,) = killed.processes("dvc", "repro")
    dvc.kill()
    process.wait()
    process.stdout.close()
    assert "resuming after epoch" in killed.run(*TRAIN)
    expected = trained(whole.folder)
    assert trained(killed.folder) == expected and len(expected) > 5


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
