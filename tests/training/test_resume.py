"""A run killed at any moment ends, resumed, with the same bytes as an undisturbed one."""

import json
import os
import pickle
import shutil
from functools import partial

import pytest
import torch
from hashed_files import flipped_bits
from killing import kill_during
from tiny_run import Run, preset

from manymatch.training.checkpoints import _OWN, Checkpoints
from manymatch.util.errors import CheckpointError
from manymatch.util.json_file import content_hash, read_object


def train_and_kill(run, target, call, run_preset=None):
    """Train in a child process that is killed (with -9) at a call; the test fails if it lives."""
    kill_during(lambda: run.train(run_preset or preset()), target, call)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, tiny):
    torch.set_num_threads(1)
    run = Run(tmp_path_factory.mktemp("undisturbed"), tiny)
    run.train(preset())
    return run.outputs()


STEP = "manymatch.training.loop.Losses.forward"
MOVE = "manymatch.util.files.move_into_place"
VALIDATE = "manymatch.training.loop.validate"
WRITE = "manymatch.training.checkpoints.save_weights"
"""The n-th call begins the checkpoint of epoch n, because each epoch of the run is the best."""
slow = partial(pytest.param, marks=pytest.mark.slow)
REAL = {
    "vsepp": {"size": 16, "word_size": 8, "feature_dropout": 0.2, "word_dropout": 0.2},
    "cora": {
        "size": 16,
        "heads": 2,
        "word_vectors": "learned",
        "word_size": 8,
        "concept_size": 8,
        "concept_dropout": 0.2,
    },
}


@pytest.mark.parametrize(
    ("target", "call", "resumed"),
    [
        slow(STEP, 3, 0),
        (STEP, 15, 2),
        slow(VALIDATE, 2, 1),
        slow(MOVE, 4, 1),  # the second epoch's best weights are written, not in place
        (MOVE, 5, 1),  # they are in place, the state is not
        slow(MOVE, 6, 1),  # the state is, the record is not
        slow("manymatch.training.curves.Curves.add", 3, 3),  # the state is, the curves are not
        slow("manymatch.training.train.save_model", 1, 4),
        slow(MOVE, 17, 4),  # the model is written, not in place
        slow("manymatch.training.checkpoints.Checkpoints.remove", 1, 4),  # the model is in place
    ],
)
def test_killed_and_resumed(new_run, undisturbed, capsys, target, call, resumed):
    run = new_run("killed")
    train_and_kill(run, target, call)
    run.train(preset())
    assert run.outputs() == undisturbed
    assert not run.checkpoints.exists()
    message = capsys.readouterr().err
    epochs = next((n for n in range(1, 5) if f"resuming after epoch {n}" in message), 0)
    # The thread that writes may still have the last checkpoint before it.
    assert epochs == resumed or (target != MOVE and epochs == resumed - 1)


@pytest.mark.parametrize(
    ("every", "call", "resumed"), [({"epochs": 2}, 4, 2), ({"minutes": 1000}, 1, 0)]
)
def test_checkpoints_after_some_epochs_or_minutes(
    new_run, undisturbed, capsys, every, call, resumed
):
    """The run is killed while it writes the checkpoint of the last epoch."""
    run, run_preset = new_run("killed"), preset(checkpoint_every=every)
    train_and_kill(run, MOVE, call, run_preset)
    run.train(run_preset)
    assert (f"resuming after epoch {resumed}" in capsys.readouterr().err) == bool(resumed)
    same = [name for name in undisturbed if name.endswith((".safetensors", ".tsv"))]
    assert len(same) > 1 and all(run.outputs()[name] == undisturbed[name] for name in same)


def test_a_resumed_run_ends_when_patience_had_ended_it(new_run):
    run_preset = preset(patience=1, optimizer={"lr": 1e-9}, epochs=6)
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(run_preset)
    train_and_kill(killed, "manymatch.training.train.save_model", 1, run_preset)
    killed.train(run_preset)
    assert killed.outputs() == whole.outputs()


@pytest.mark.parametrize(
    ("optimizer", "call"), [slow("adamw", 9), slow("adamw", 15), ("adamp", 15)]
)
def test_frozen_and_thawed_parameters_resume_to_the_same_bytes(new_run, optimizer, call):
    groups = ({"match": "^image", "from_epoch": 2}, {"match": "^words", "weight_decay": 0.1})
    settings = {"optimizer": {"name": optimizer, "lr": 0.02}, "parameter_groups": groups}
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(preset(**settings))
    train_and_kill(killed, STEP, call, preset(**settings))
    killed.train(preset(**settings))
    assert killed.outputs() == whole.outputs()


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_methods_resume_to_the_same_bytes(new_run, name):
    run_preset = preset(REAL[name], epochs=2).model_copy(update={"method": name})
    whole, killed = new_run("whole"), new_run("killed")
    whole.train(run_preset)
    train_and_kill(killed, STEP, 9, run_preset)
    killed.train(run_preset)
    assert killed.outputs() == whole.outputs()


# --- checkpoints that are not ours ------------------------------------------------------------


def test_checkpoint_of_other_settings_is_ignored(new_run, capsys):
    run, fresh = new_run("killed"), new_run("fresh")
    train_and_kill(run, WRITE, 2)
    run_preset = preset(clip_norm=0.5)
    run.train(run_preset)
    assert "ignored and training starts anew: it was made with another preset" in (
        capsys.readouterr().err
    )
    fresh.train(run_preset)
    assert run.outputs() == fresh.outputs()


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil",)


@pytest.fixture(scope="module")
def _killed(tmp_path_factory, tiny):
    run = Run(tmp_path_factory.mktemp("killed"), tiny)
    train_and_kill(run, WRITE, 4)
    return run


@pytest.fixture
def killed(_killed, tmp_path):
    """A run that was killed after its third checkpoint, of its own for each test."""
    return Run(shutil.copytree(_killed.folder, tmp_path / "killed"), _killed.data)


def last_files(run):
    """The record, the state and the best weights of the last checkpoint."""
    *_, record = sorted(run.checkpoints.glob("epoch-*.json"))
    *_, best = sorted(run.checkpoints.glob("best-*"))
    return [record, record.with_suffix(".ckpt"), best]


@pytest.mark.parametrize("key", ["files", "history"])
def test_a_record_of_another_version_leads_to_the_checkpoint_before(killed, key):
    path, *_ = last_files(killed)
    record = json.loads(path.read_bytes())
    del record[key], record[_OWN]
    path.write_text(json.dumps(record | {_OWN: content_hash(record)}))
    history, fault = killed_checkpoints(killed).find()
    assert (len(history.rows), fault) == (2, f"{path.name} is of another version")


@pytest.mark.parametrize("kind", [".json", ".ckpt", ".safetensors"])
def test_a_flipped_bit_leads_to_the_checkpoint_before(killed, undisturbed, capsys, kind):
    (path,) = (path for path in last_files(killed) if path.suffix == kind)
    checkpoints = killed_checkpoints(killed)
    for _ in flipped_bits(path, 30):
        history, fault = checkpoints.find()
        assert (len(history.rows), fault) == (2, f"{path.name} is damaged")
    assert len(checkpoints.find()[0].rows) == 3
    next(flipped_bits(path, 1))
    capsys.readouterr()
    killed.train(preset())
    lines = [line for line in capsys.readouterr().err.splitlines() if path.name in line]
    assert len(lines) == 1 and "resuming after epoch 2" in lines[0]
    assert killed.outputs() == undisturbed


def killed_checkpoints(run):
    """The checkpoints of a killed run, with the fingerprint that its last record has."""
    record = read_object(last_files(run)[0])
    return Checkpoints(run.checkpoints, record["fingerprint"], "tiny")


def test_without_an_undamaged_checkpoint_training_starts_anew(
    new_run, undisturbed, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    run = new_run("run")
    train_and_kill(run, WRITE, 3)
    for path in run.checkpoints.glob("*.ckpt"):
        path.write_bytes(pickle.dumps(Evil()))
    run.train(preset())
    assert "training starts anew: epoch-0002.ckpt is damaged" in capsys.readouterr().err
    assert run.outputs() == undisturbed
    assert not (tmp_path / "evil").exists()


def test_best_weights_damaged_while_training_are_one_line(killed):
    checkpoints = killed_checkpoints(killed)
    history, _ = checkpoints.find()
    next(flipped_bits(last_files(killed)[2], 1))
    with pytest.raises(CheckpointError, match="damaged or removed during training"):
        checkpoints.load_best(torch.nn.Linear(1, 1), history.best)


def test_two_checkpoints_are_kept(killed):
    assert sorted(path.name for path in killed.checkpoints.iterdir()) == [
        "best-0002.safetensors",
        "best-0003.safetensors",
        "epoch-0002.ckpt",
        "epoch-0002.json",
        "epoch-0003.ckpt",
        "epoch-0003.json",
    ]
