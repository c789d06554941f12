"""The curves of a training are complete at its end."""

from __future__ import annotations

import shutil
from pathlib import Path

from manymatch.training.curves import Curves
from manymatch.training.history import History


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
