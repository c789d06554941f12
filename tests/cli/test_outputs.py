"""Every command holds the locks of what it writes."""

import contextlib
import os
import threading
from pathlib import Path

import pytest
import typer
import yaml

from manymatch.cli import outputs
from manymatch.cli.commands import app
from manymatch.cli.outputs import writes
from manymatch.util.errors import DataError

WITHOUT = {
    *("check", "plan", "results", "models", "version", "serve"),  # write nothing
    "demo",  # a folder for the time of the demo
    "search",  # at most a page that the user names
    "explore",  # locks the file of judgments for each judgment
    "experiment",  # locks every run and its file of results
}
ARGUMENTS = {
    "dataset": "scenes",
    "preset": "cora",
    "features": "lite0",
    "presets": ["cora", "vsepp"],
    "name": None,
    "source": Path("photos"),
    "model": "models/scenes/cora",
    "to": "data/indexes/${key}",
}


def test_every_command_has_its_outputs():
    commands = typer.main.get_group(app).commands
    assert {name for name, command in commands.items() if not written(command)} == WITHOUT


def test_the_outputs_are_those_of_dvc(root):
    """All outputs of a stage must be there, or the stage is not finished."""
    commands = typer.main.get_group(app).commands
    stages = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    for name, stage in stages.items():
        stage = stage.get("do", stage)
        command = commands[stage["cmd"].split()[1]]
        if command.name in WITHOUT:
            continue
        listed = [*stage["outs"], *stage.get("plots", ()), *stage.get("metrics", ())]
        paths = [entry if isinstance(entry, str) else next(iter(entry)) for entry in listed]
        known = {os.path.relpath(path) for path in outputs.paths_of(written(command), ARGUMENTS)}
        for path in paths:
            assert filled(path) in known, name


def written(command):
    return getattr(command.callback, "outputs", None)


def filled(path):
    for name, value in {**ARGUMENTS, "ensemble": "cora+vsepp"}.items():
        path = path.replace(f"${{item.{name}}}", str(value))
    return path


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_the_second_of_two_commands_waits_for_the_first():
    begun, go_on, calls = threading.Event(), threading.Event(), []

    @writes(Path("output"))
    def command(dataset):
        calls.append(dataset)
        begun.set()
        assert go_on.wait(20)
        if dataset == "first":
            raise DataError("damaged")

    def run(dataset):
        with contextlib.suppress(DataError):
            command(dataset=dataset)

    threads = [threading.Thread(target=run, args=[name]) for name in ("first", "second")]
    threads[0].start()
    assert begun.wait(20)
    threads[1].start()
    threads[1].join(0.3)
    assert threads[1].is_alive() and calls == ["first"]
    go_on.set()
    for thread in threads:
        thread.join(20)
    assert calls == ["first", "second"] and not list(Path().glob("*.partial"))


@pytest.mark.usefixtures("project")
def test_a_command_with_an_output_twice_does_not_wait_for_itself():
    @writes(lambda presets: [Path(preset) for preset in presets])
    def command(presets):
        done.append(presets)

    done = []
    command(presets=["a", "a"])
    assert done == [["a", "a"]]


@pytest.mark.usefixtures("project")
def test_parts_and_the_processes_of_torchrun_run_side_by_side(monkeypatch):
    @writes(Path("output"))
    def command(part=None):
        held.append(Path("output.lock.partial").exists())

    held = []
    command(part="1/2")
    command(part=None)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    for rank in ("0", "1"):
        monkeypatch.setitem(os.environ, "RANK", rank)
        command(part=None)
    assert held == [False, True, True, False]
