"""The command line in this process, in a folder that holds configuration and nothing else."""

import shutil
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from manymatch.cli import commands
from manymatch.cli.project import LAYOUT


def configured(root, folder, monkeypatch):
    """`folder` with the configuration of the checkout `root`, as the current folder."""
    shutil.copy(root / "params.yaml", folder)
    shutil.copytree(root / "presets", folder / "presets")
    monkeypatch.chdir(folder)
    return folder


def configured_with(data, root, folder, monkeypatch):
    """`folder` as by `configured`, with shards of four images and the tables and features of `data`
    as the data set `scenes`. Returns the settings in params.yaml."""
    configured(root, folder, monkeypatch)
    settings = yaml.safe_load(Path("params.yaml").read_text())
    settings["shards"] = {"images_per_shard": 4, "thumbnail": 16}
    Path("params.yaml").write_text(yaml.safe_dump(settings))
    for source, target in {
        data.captions: LAYOUT.captions("scenes"),
        data.graphs: LAYOUT.scene_graphs("scenes"),
        data.store: LAYOUT.features("scenes", "grid"),
    }.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    shutil.copytree(data.raw, LAYOUT.raw("scenes"))
    return settings


def run(command, monkeypatch, code=0):
    """Run the command, which must exit with `code`."""
    words = command.split() if isinstance(command, str) else command
    monkeypatch.setattr(sys, "argv", ["manymatch", *words])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == code


def ends(command, code, monkeypatch, capfd):
    """What the command prints that exits with `code`."""
    run(command, monkeypatch, code)
    return capfd.readouterr()


def fails(command, monkeypatch, capfd):
    """The one line that the command ends with."""
    lines = ends(command, 1, monkeypatch, capfd).err.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert lines[-1].startswith("error: ") and "Traceback" not in lines
    return lines[-1]


def printed(*words):
    """What the command prints on both streams, which must succeed."""
    outcome = CliRunner().invoke(commands.app, words, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output
