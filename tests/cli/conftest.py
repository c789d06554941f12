"""The command line in a test, without its fixtures in every signature."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import command_line
import pytest
from _pytest.capture import CaptureResult

Ends = Callable[[str | list[str], int], CaptureResult[str]]
Fails = Callable[[str | list[str]], str]


@pytest.fixture
def checkout(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with configuration and nothing else."""
    return command_line.configured(root, tmp_path, monkeypatch)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ends:
    """What a command prints that exits with a code."""
    return lambda command, code: command_line.ends(command, code, monkeypatch, capfd)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Fails:
    """The one line that a command ends with."""
    return lambda command: command_line.fails(command, monkeypatch, capfd)
