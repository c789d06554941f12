"""Training curves on a full disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from full_disk import error_on_full_disk

from manymatch.results.curves import read_curves
from manymatch.training.curves import Curves
from manymatch.training.history import History

EPOCHS = 20


@pytest.mark.parametrize("room", [40, 65, 100])
def test_a_full_disk_is_one_line_and_keeps_the_finished_epochs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.chdir(tmp_path)  # not the checkout, whose cache of DVC is written too

    def train() -> None:
        with Curves(tmp_path, History()) as curves:
            for epoch in range(EPOCHS):
                curves.add({"train/loss": epoch / 7, "validation/rsum": 100 + epoch / 3})

    line = error_on_full_disk(train, room)
    assert line.startswith(f"StorageError: {tmp_path}: no space left") and "\n" not in line
    kept = read_curves(tmp_path)
    assert len(kept) == 2
    assert all(0 < len(curve.points) < EPOCHS for curve in kept.values())
