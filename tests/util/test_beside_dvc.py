"""A stage of `dvc repro` beside the same stage by hand, or after a `dvc repro` that was killed."""

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


@pytest.fixture(scope="module")
def by_hand(prepared):
    """The folder in which one process trained alone, and the output of the DVC that waited for it.

    DVC removes the outputs of the stage at its start, while the other process trains.
    """
    workspace = prepared()
    training = workspace.start("manymatch", "train", "scenes", "vsepp")
    wait_for("epoch 2/30", training)
    (worker,) = workspace.processes("manymatch", "train")
    worker.suspend()  # so that it trains until DVC is there
    repro = workspace.start(*TRAIN)
    try:
        wait_for(f"waiting for process {worker.pid}", repro)
    finally:
        worker.resume()
    outputs = [process.communicate()[0] for process in (training, repro)]
    assert (training.returncode, repro.returncode) == (0, 0), outputs
    return workspace.folder, outputs[1]


def test_dvc_takes_over_what_a_stage_by_hand_finishes(by_hand):
    assert "nothing is left" in by_hand[1]


def test_after_kills_the_next_repro_ends_with_the_same_model(prepared, by_hand):
    workspace, expected = prepared(), trained(by_hand[0])
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
