"""Training under `torchrun`, which an environment variable asks for."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import warm_commands
from tiny_run import preset

from manymatch.training.run_context import TORCHRUN as TORCHRUN_OPTIONS
from manymatch.training.run_context import relaunch
from manymatch.util.errors import ConfigError

HELPERS = Path(__file__).parents[1] / "helpers"
AGENT = "from torch.distributed.run import main; main()"
TRAIN = f"import sys; sys.path.insert(0, {str(HELPERS)!r}); import tiny_run; tiny_run.main()"


@pytest.mark.slow
def test_when_a_process_dies_all_end_and_the_next_run_goes_on(new_run):
    run, run_preset = new_run("run"), preset(epochs=1000)
    process = start_torchrun(run, run_preset)
    ranks, family = wait_for_epoch(run)
    # torchrun and two that train, each a script and its fork: no process has started others
    assert len(ranks) == 2 and len(family) == 6
    ranks["1"].kill()
    process.communicate(timeout=100)
    assert process.returncode not in (0, None)
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert epochs_saved(run) and not run.model.exists()

    again = start_torchrun(run, run_preset)
    first = next(line for line in again.stderr if line.startswith(("resuming", "epoch")))
    assert first.startswith("resuming after epoch")
    epochs = [next(line for line in again.stderr if line.startswith("epoch")) for _ in range(4)]
    assert len({line.split(":")[0] for line in epochs}) == 4  # both work at the same epochs
    # torchrun's processes are in sessions of their own, which a killed group does not reach.
    _, family = wait_for_epoch(run)
    again.kill()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    again.communicate()


def epochs_saved(run):
    return list(run.checkpoints.glob("epoch-*.json"))


def wait_for_epoch(run):
    """The processes that train, by their ranks, and all, once there is a checkpoint."""
    deadline = time.monotonic() + 200
    while not epochs_saved(run) and time.monotonic() < deadline:
        time.sleep(0.1)
    everything = psutil.process_iter(["cwd", "environ"])
    here = [process for process in everything if process.info["cwd"] == str(run.folder)]
    ranks = {process.info["environ"].get("RANK"): process for process in here}
    ranks.pop(None, None)
    return ranks, here


def start_torchrun(run, run_preset):
    """`torchrun`, whose processes are warm too."""
    run.folder.mkdir(exist_ok=True)
    (run.folder / "preset.yaml").write_text(run_preset.to_yaml())
    spawn = str(warm_commands.spawn())
    options = ("--standalone", "--nproc-per-node", "2", "--no-python")
    paths = map(str, (run.folder, run.data.folder, run.folder / "preset.yaml"))
    command = [spawn, "-c", AGENT, *options, spawn, "-c", TRAIN, *paths]
    return subprocess.Popen(command, cwd=run.folder, stderr=subprocess.PIPE, text=True)


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
