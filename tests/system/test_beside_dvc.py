"""A stage of `dvc repro` beside the same stage by hand, or after a `dvc repro` that was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Workspace

pytestmark = pytest.mark.slow


TRAIN = ("dvc", "repro", "--single-item", "train@scenes-vsepp")
New = Callable[[], Workspace]


@pytest.fixture(scope="module")
def prepared(finished: Workspace, new_workspace: New) -> New:
    """Makes workspaces with data; their training is long enough to end in the midst of it."""

    def make() -> Workspace:
        workspace = new_workspace()
        workspace.copy_data_from(finished)
        workspace.edit("presets/scenes/vsepp.yaml", {"training.epochs": 60})
        return workspace

    return make


@pytest.fixture(scope="module")
def undisturbed(prepared: New) -> dict[str, bytes]:
    workspace = prepared()
    workspace.run(*TRAIN)
    return trained(workspace.folder)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_repro_ends_with_the_same_model(
    prepared: New, undisturbed: dict[str, bytes], sent: signal.Signals
) -> None:
    workspace = prepared()
    process = workspace.start(*TRAIN)
    assert process.stdout is not None
    while "epoch 2/60" not in (line := process.stdout.readline()):
        assert line
    process.send_signal(sent)
    process.wait()
    process.stdout.close()
    assert "resuming after epoch" in workspace.run(*TRAIN)
    assert trained(workspace.folder) == undisturbed and len(undisturbed) > 5


def test_dvc_takes_over_what_a_stage_by_hand_finishes(
    prepared: New, undisturbed: dict[str, bytes]
) -> None:
    """DVC removes the outputs of the stage at its start, while the other process trains."""
    workspace = prepared()
    process = workspace.start("manymatch", "train", "scenes", "vsepp")
    assert process.stdout is not None
    while "epoch 2/60" not in (line := process.stdout.readline()):
        assert line
    output = workspace.run(*TRAIN)
    process.communicate()
    assert process.returncode == 0
    assert f"waiting for process {process.pid}" in output and "nothing is left" in output
    assert trained(workspace.folder) == undisturbed


def trained(folder: Path) -> dict[str, bytes]:
    paths = [folder / "models/scenes/vsepp", folder / "reports/curves/scenes/vsepp"]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for root in paths
        for path in root.rglob("*")
        if path.is_file()
    }
