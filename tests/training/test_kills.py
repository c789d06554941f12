"""Training that is killed (with -9) at random moments keeps a whole checkpoint, and ends with the
same bytes as an undisturbed training.

Half of the kills are exactly at a change of a file, before it is opened, moved or removed; the
others come up to two milliseconds later, in the middle of writing. More kills by hand:

    MANYMATCH_KILLS=1000 python -m pytest -s tests/training/test_kills.py
"""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter

import pytest
from forked import forked
from tiny_run import Run, preset

from manymatch.training.checkpoints import Checkpoints, fingerprint
from manymatch.training.machine import choose_machine

KILLS = int(os.environ.get("MANYMATCH_KILLS", "5"))
CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def train_and_kill(run, change, delay):
    """Train in a child process that dies at a change of the run's files; whether the child did."""

    def work():
        sys.addaudithook(_killer((str(run.checkpoints), str(run.model)), change, delay))
        run.train(preset())

    _, status = os.waitpid(forked(work), 0)
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)


def _killer(folders, change, delay):
    count = 0

    def kill():
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)

    def audit(event, values):
        nonlocal count
        if event in CHANGES and str(values[0]).startswith(folders):
            count += 1
            if count == change:
                threading.Thread(target=kill).start() if delay else kill()

    return audit


@pytest.mark.slow
def test_random_kills(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("manymatch.training.curves.Live", None)  # curves take most of the time
    undisturbed = Run(tmp_path / "undisturbed", tiny)
    undisturbed.train(preset())
    expected = undisturbed.outputs()
    machine = repr(choose_machine(preset().training))
    inputs = fingerprint(preset(), tiny.shards, tiny.vocabulary, machine)
    rng = random.Random(0)
    kills, finished, after = 0, 0, Counter[int]()
    while kills < KILLS:
        run, epochs, latest = Run(tmp_path / f"run{finished}", tiny), 0, 60
        while train_and_kill(run, rng.randint(1, latest), rng.choice([0.0, rng.uniform(0, 0.002)])):
            kills += 1
            latest += 20  # the end of the run has many changes: else most runs would never end
            history, fault = Checkpoints(run.checkpoints, inputs, "tiny").find()
            assert not fault
            assert len(history.rows) >= epochs or run.outputs() == expected
            epochs = len(history.rows)
            after[epochs] += 1
        assert run.outputs() == expected
        assert not run.checkpoints.exists()
        assert not list(run.folder.rglob("*.partial"))
        finished += 1
    print(f"{kills} kills (by epochs in the checkpoint: {sorted(after.items())}), {finished} runs")
