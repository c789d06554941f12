"""Training curves of each logger, on a full disk, and beside another process."""

import csv
import importlib.util
import shutil
import sqlite3

import pytest
from full_disk import error_on_full_disk

from manymatch.results.runs import read_curves
from manymatch.training import curves as curves_module
from manymatch.training.checkpoints import History
from manymatch.training.curves import EXTRAS, Curves
from manymatch.util.errors import ConfigError, StorageError

EPOCHS = 20


def test_a_full_disk_is_one_line_and_keeps_the_finished_epochs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # not the checkout, whose cache of DVC is written too

    def train():
        with Curves(tmp_path, history := History()) as curves:
            for epoch in range(EPOCHS):
                history.rows.append({"train/loss": epoch / 7, "validation/rsum": 100 + epoch / 3})
                curves.add()

    line = error_on_full_disk(train, 65)
    assert line.startswith(f"StorageError: {tmp_path}: no space left") and "\n" not in line
    kept = read_curves(tmp_path)
    assert len(kept) == 2
    assert all(0 < len(curve.points) < EPOCHS for curve in kept.values())


def test_a_damaged_cache_of_dvc_is_one_line(tmp_path, monkeypatch):
    def start(*_, **__):
        raise sqlite3.DatabaseError("file is not a database")

    monkeypatch.setattr(curves_module, "Live", start)
    with pytest.raises(StorageError, match="DVC cannot be started: file is not a database"):
        Curves(tmp_path, History())


def test_curves_that_dvc_removed_meanwhile_are_complete(tmp_path):
    history = History()
    with Curves(tmp_path / "curves", history) as curves:
        for loss in (3.0, 2.0, 1.0):
            history.rows.append({"train/loss": loss})
            curves.add()
            if loss == 2.0:
                shutil.rmtree(tmp_path / "curves" / "plots" / "metrics")
    (file,) = (tmp_path / "curves").rglob("*.tsv")
    assert file.read_text().split() == ["step", "loss", "0", "3.0", "1", "2.0", "2", "1.0"]


def test_a_missing_package_is_one_line_that_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for logger in EXTRAS:
        with pytest.raises(ConfigError, match=rf"training.logger: .*'.\[{logger}\]'") as error:
            Curves(tmp_path / "curves", History(), logger)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "curves").exists()


def logged(logger, folder):
    """Every value in the files of a logger by its name and epoch."""
    output = folder / "plots" / "metrics"
    if logger == "csv":
        rows = list(csv.DictReader((output / "metrics.csv").open()))
        return {
            (name, int(row["step"])): float(row[name])
            for row in rows
            for name in row.keys() - {"step"}
        }
    if logger == "mlflow":
        with sqlite3.connect(output / "mlflow.db") as database:
            found = database.execute("SELECT key, step, value FROM metrics").fetchall()
        return {(name, step): value for name, step, value in found}
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(output)).Reload()
    return {
        (name, event.step): event.value
        for name in events.Tags()["scalars"]
        for event in events.Scalars(name)
    }


@pytest.mark.parametrize("logger", ["csv", "tensorboard", "mlflow"])
def test_a_resumed_run_has_each_epoch_once(logger, tmp_path, monkeypatch):
    if logger in EXTRAS:
        pytest.importorskip(logger)
    monkeypatch.setenv("SLURM_PROCID", "1")  # a cluster's number is not that of this process
    folder, rows = tmp_path / "scenes" / "cora", [{"train/loss": 3.0}, {"train/loss": 2.5}]
    for count in (1, 2):  # the second run resumes after the first epoch
        history = History(rows[: count - 1])
        with Curves(folder, history, logger) as curves:
            history.rows.append(rows[count - 1])
            curves.add()
    assert logged(logger, folder) == {("train/loss", 0): 3.0, ("train/loss", 1): 2.5}
