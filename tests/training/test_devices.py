"""The command `train` on two devices, here two processes of the CPU."""

import contextlib
import itertools
import multiprocessing
import os
import signal
import time
from functools import partial

import psutil
import pytest
import yaml
from tiny_checkout import PRESET, make_checkout
from workspace import Workspace

from manymatch.config.preset import read_preset
from manymatch.experiments.grid import points
from manymatch.experiments.presets import preset_of
from manymatch.model.checkpoint import load_model
from manymatch.results.runs import read_curves
from manymatch.training.helpers import helped
from manymatch.training.train import train
from manymatch.util.errors import DataError, ManyMatchError

SECONDS = 300
"""After so long a command hangs."""
OF_A_CLUSTER = {
    **dict.fromkeys(("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID"), "1"),
    "WORLD_SIZE": "4",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "1",
    "SLURM_NTASKS": "1",
    "SLURM_NTASKS_PER_NODE": "1",
    "SLURM_JOB_NAME": "job",
}
"""What a cluster's own launcher leaves in the environment."""


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose preset `two` has two devices, each with its batches in two parts."""
    made = make_checkout(tmp_path / "checkout", tmp_path)
    model = {**PRESET["model"], "feature_dropout": 0.0}
    late = [{"match": "^image", "from_epoch": 1}]
    for name, devices in {"one": 1, "two": 2}.items():
        settings = {"devices": devices, "accumulate": devices, "strategy": "ddp"}
        settings |= {"precision": "32-true", "weight_average": 0.5, "parameter_groups": late}
        training = {**PRESET["training"], **settings}
        text = yaml.safe_dump({**PRESET, "model": model, "training": training})
        (made.layout.presets / "tiny" / f"{name}.yaml").write_text(text)
    return made


@pytest.fixture
def workspace(checkout):
    return Workspace(checkout.layout.params.parent)


@contextlib.contextmanager
def started(workspace, *command):
    """The command with its output, in a process group of its own that ends with the block."""
    with workspace.start(*command) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def said(output):
    """The lines of an output without torch's own warnings about parameters without gradient."""
    return [line for line in output.splitlines() if line and not line.startswith("[rank")]


def test_every_run_of_an_experiment_has_one_device(checkout):
    plan = checkout.plan(points={"one": {"preset": "one"}, "two": {"preset": "two"}})
    one, two = (preset_of(checkout.layout, plan, point, seed=0) for point in points(plan))
    assert (one.training.devices, two.training.devices) == (1, "auto")


@pytest.mark.slow
def test_two_devices_train_like_one_whatever_a_cluster_has_set(checkout, workspace, monkeypatch):
    for name, value in OF_A_CLUSTER.items():
        monkeypatch.setenv(name, value)
    workspace.run("manymatch", "train", "tiny", "one")
    output = workspace.run("manymatch", "train", "tiny", "two")
    lines = [line for line in said(output) if "loading libraries" not in line]
    assert len(lines) == 4 and lines[0].startswith("training on 2 x cpu"), output
    one, two = (load_model(checkout.layout.model("tiny", name))[0] for name in ("one", "two"))
    for name, value in one.state_dict().items():
        assert value.sub(two.state_dict()[name]).abs().max() < 1e-4, name
    ours, theirs = (read_curves(checkout.layout.curves("tiny", name)) for name in ("one", "two"))
    assert ours.keys() == theirs.keys() and "train/loss" in ours
    for name, curve in ours.items():
        assert dict(theirs[name].points) == pytest.approx(dict(curve.points), rel=1e-4), name
    assert not checkout.layout.checkpoints("tiny", "two").exists()
    assert "rsum" in workspace.run("manymatch", "evaluate", "tiny", "two")


@pytest.mark.slow
def test_one_program_trains_several_times(checkout, tmp_path):
    """With two processes, with one, and with two again; its environment stays as it was."""
    layout = checkout.layout
    shards, words = layout.shards("tiny", "grid"), layout.vocabulary("tiny")
    for name in ("two", "one", "two"):
        preset = read_preset(layout.presets / "tiny" / f"{name}.yaml")
        places = (tmp_path / "made" / place for place in ("model", "curves", "checkpoints"))
        before = dict(os.environ)
        train(preset, shards, words, *places)
        assert dict(os.environ) == before


def _fail(how):
    if how == "fault":
        raise DataError("shard 2 is damaged")
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words"),
    [("fault", "^shard 2 is damaged$"), ("exit", "exit code 3"), ("kill", "killed by signal 9")],
)
def test_what_ended_a_helper_is_told_once(how, words):
    """The first process notices the end by a connection that breaks."""

    def break_off():
        for child in multiprocessing.active_children():
            child.join()
        raise RuntimeError("connection closed by peer")

    with pytest.raises(ManyMatchError, match=words), helped(2, partial(_fail, how)):
        break_off()


ENDS = {
    "helper": (lambda command, first, helper: helper.kill(), 1),
    "first": (lambda command, first, helper: first.kill(), -signal.SIGKILL),
    "control-c": (lambda command, first, helper: os.killpg(command.pid, signal.SIGINT), 130),
    "terminated": (lambda command, first, helper: first.terminate(), 130),
}
"""How the first process and its helper end, and the exit code of the command."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "preset"),
    [("helper", "two"), ("first", "two"), ("control-c", "two"), ("terminated", "one")],
)
def test_a_training_that_is_ended_leaves_no_process_and_goes_on(checkout, workspace, name, preset):
    end, code = ENDS[name]
    command = "manymatch", "train", "tiny", preset, "--set", "training.epochs=100000"
    with started(workspace, *command) as process:
        assert not resumed(process)
        family = workspace.processes()
        (first,) = workspace.processes("manymatch", "train")
        helpers = workspace.processes("--multiprocessing-fork")
        assert len(helpers) == (preset == "two") and not open_to_the_network(family)
        while not list(checkout.layout.checkpoints("tiny", preset).glob("epoch-*.json")):
            time.sleep(0.1)  # a thread writes the checkpoint after the line of the epoch
        end(process, first, *(helpers or [None]))
        output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == code, output
        assert psutil.wait_procs(family, timeout=30)[1] == []
    others = [line for line in said(output) if not line.startswith("epoch")]
    assert len(others) == (code > 0), output
    if name == "first":
        with started(workspace, *command) as process:
            assert resumed(process)


def open_to_the_network(processes):
    """The ports of the processes at which every host is heard."""
    ports = [port for process in processes for port in process.net_connections()]
    return [
        port for port in ports if port.status == "LISTEN" and port.laddr.ip in ("::", "0.0.0.0")
    ]


def resumed(process):
    """Whether the training goes on from an epoch of an earlier one; waits for the first epoch."""
    lines = iter(process.stdout.readline, "")
    before = list(itertools.takewhile(lambda line: not line.startswith("epoch"), lines))
    return any(line.startswith("resuming after") for line in before)
