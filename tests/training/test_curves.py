"""Training curves on a full disk, and beside another process."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from full_disk import error_on_full_disk

from manymatch.results.runs import read_curves
from manymatch.training import curves as curves_module
from manymatch.training.curves import Curves
from manymatch.training.history import History
from manymatch.util.errors import StorageError

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


def test_a_damaged_cache_of_dvc_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise sqlite3.DatabaseError("file is not a database")

    monkeypatch.setattr(curves_module, "Live", start)
    with pytest.raises(StorageError, match="DVC cannot be started: file is not a database"):
        Curves(tmp_path, History())


def test_curves_that_dvc_removed_meanwhile_are_complete(tmp_path: Path) -> None:
    history = History()
    with Curves(tmp_path / "curves", history) as curves:
        for loss in (3.0, 2.0, 1.0):
            row = {"train/loss": loss}
            history.rows.append(row)
            curves.add(row)
            if loss == 2.0:
                shutil.rmtree(tmp_path / "curves" / "plots" / "metrics")
    (file,) = (tmp_path / "curves").rglob("*.tsv")
    assert file.read_text().split() == ["step", "loss", "0", "3.0", "1", "2.0", "2", "1.0"]
