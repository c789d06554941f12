"""Training under `torchrun`, which an environment variable asks for."""

import os
import subprocess
import sys
import time

import psutil
import pytest
import tiny_run
from tiny_run import preset

from manymatch.training.run_context import TORCHRUN as TORCHRUN_OPTIONS
from manymatch.training.run_context import relaunch
from manymatch.util.errors import ConfigError

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def command(run, run_preset, launcher=()):
    run.folder.mkdir(exist_ok=True)
    (run.folder / "preset.yaml").write_text(run_preset.to_yaml())
    paths = [run.folder, run.data.folder, run.folder / "preset.yaml"]
    return [sys.executable, *launcher, tiny_run.__file__, *map(str, paths)]


@pytest.mark.slow
def test_when_a_process_dies_all_end_and_the_next_run_goes_on(new_run):
    run, run_preset = new_run("run"), preset(epochs=1000)
    process = start_torchrun(run, run_preset)
    family = wait_for_epoch(process, run)
    ranks = {member.environ()["RANK"]: member for member in family if "RANK" in member.environ()}
    assert len(ranks) == len(family) == 2  # no process has started others
    ranks["1"].kill()
    process.communicate(timeout=100)
    assert process.returncode not in (0, None)
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert epochs_saved(run) and not run.model.exists()

    again = start_torchrun(run, run_preset)
    assert again.stderr is not None
    first = next(line for line in again.stderr if line.startswith(("resuming", "epoch")))
    assert first.startswith("resuming after epoch")
    epochs = [next(line for line in again.stderr if line.startswith("epoch")) for _ in range(4)]
    assert len({line.split(":")[0] for line in epochs}) == 4  # both work at the same epochs
    # torchrun's processes are in sessions of their own, which a killed group does not reach.
    family = wait_for_epoch(again, run)
    again.kill()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    again.communicate()


def epochs_saved(run):
    return list(run.checkpoints.glob("epoch-*.json"))


def wait_for_epoch(process, run):
    """Everything that `process` has started, once there is a checkpoint."""
    deadline = time.monotonic() + 200
    while not epochs_saved(run) and time.monotonic() < deadline:
        time.sleep(0.1)
    return psutil.Process(process.pid).children(recursive=True)


def start_torchrun(run, run_preset):
    return subprocess.Popen(command(run, run_preset, TORCHRUN), stderr=subprocess.PIPE, text=True)


def test_the_environment_asks_for_torchrun(monkeypatch):
    called = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: called.append([path, *arguments]))
    monkeypatch.setattr(sys, "argv", ["manymatch", "train", "scenes", "cora"])
    monkeypatch.delenv(TORCHRUN_OPTIONS, raising=False)
    relaunch()
    assert called == []
    monkeypatch.setenv(TORCHRUN_OPTIONS, "--nproc-per-node 2")
    relaunch()
    (result,) = called
    expected = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    assert result[2:] == [*expected, "-m", "manymatch", "train", "scenes", "cora"]
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "started by torchrun")
    relaunch()
    assert len(called) == 1
    monkeypatch.setenv(TORCHRUN_OPTIONS, "--standalone '")
    with pytest.raises(ConfigError, match=r"^MANYMATCH_TORCHRUN=.*: No closing"):
        relaunch()
