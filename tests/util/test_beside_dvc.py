"""A stage of `dvc repro` beside the same stage by hand."""

import pytest


@pytest.mark.slow
def test_dvc_takes_over_what_a_stage_by_hand_finishes(finished, new_workspace):
    """DVC removes the outputs of the stage at its start, while the other process trains."""
    workspace = new_workspace()
    workspace.copy_data_from(finished)
    workspace.edit("presets/scenes/vsepp.yaml", {"training.epochs": 9})
    training = workspace.start("manymatch", "train", "scenes", "vsepp")
    wait_for("epoch 2/9", training)
    (worker,) = workspace.processes("manymatch", "train")
    worker.suspend()  # so that it trains until DVC is there
    repro = workspace.start("dvc", "repro", "--single-item", "train@scenes-vsepp")
    try:
        wait_for(f"waiting for process {worker.pid}", repro)
    finally:
        worker.resume()
    outputs = [process.communicate()[0] for process in (training, repro)]
    assert (training.returncode, repro.returncode) == (0, 0), outputs
    assert "nothing is left" in outputs[1]


def wait_for(text, process):
    """Read the output up to a line that contains `text`."""
    assert process.stdout is not None
    assert any(text in line for line in process.stdout), f"{text} was never said"
