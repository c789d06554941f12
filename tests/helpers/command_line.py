"""The command line in this process, in a folder that holds configuration and nothing else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from manymatch import cli


def configured(root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`folder` with the configuration of the checkout `root`, as the current folder."""
    shutil.copy(root / "params.yaml", folder)
    shutil.copytree(root / "presets", folder / "presets")
    monkeypatch.chdir(folder)
    return folder


def run(command: str | list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, which must succeed."""
    words = command.split() if isinstance(command, str) else command
    monkeypatch.setattr(sys, "argv", ["manymatch", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0


def fails(
    command: str | list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> str:
    """The one line that the command ends with."""
    words = command.split() if isinstance(command, str) else command
    monkeypatch.setattr(sys, "argv", ["manymatch", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert lines[-1].startswith("error: ") and "Traceback" not in lines
    return lines[-1]
