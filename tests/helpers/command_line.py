"""The command line in this process, in a folder that holds configuration and nothing else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from _pytest.capture import CaptureResult
from typer.testing import CliRunner

from manymatch.cli import commands
from manymatch.cli.project import LAYOUT

if TYPE_CHECKING:
    from tiny_data import TinyData


def configured(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`folder` with the configuration of the checkout `root`, as the current folder."""
    shutil.copy(root / "params.yaml", folder)
    shutil.copytree(root / "presets", folder / "presets")
    monkeypatch.chdir(folder)
    return folder


def configured_with(
    data: TinyData, root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """`folder` as by `configured`, with shards of four images and the tables and features of `data`
    as the data set `scenes`. Returns the settings in params.yaml."""
    configured(root, folder, monkeypatch)
    settings: dict[str, Any] = yaml.safe_load(Path("params.yaml").read_text())
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


def run(command: str | list[str], monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
    """Run the command, which must exit with `code`."""
    words = command.split() if isinstance(command, str) else command
    monkeypatch.setattr(sys, "argv", ["manymatch", *words])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == code


def ends(
    command: str | list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> CaptureResult[str]:
    """What the command prints that exits with `code`."""
    run(command, monkeypatch, code)
    return capfd.readouterr()


def fails(
    command: str | list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> str:
    """The one line that the command ends with."""
    lines = ends(command, 1, monkeypatch, capfd).err.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert lines[-1].startswith("error: ") and "Traceback" not in lines
    return lines[-1]


def printed(*words: str) -> str:
    """What the command prints on both streams, which must succeed."""
    outcome = CliRunner().invoke(commands.app, words, catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output
