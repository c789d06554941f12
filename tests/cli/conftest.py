"""The command line in a test, without its fixtures in every signature."""

import command_line
import pytest


@pytest.fixture
def checkout(root, tmp_path, monkeypatch):
    """A folder with configuration and nothing else."""
    return command_line.configured(root, tmp_path, monkeypatch)


@pytest.fixture
def ends(monkeypatch, capfd):
    """What a command prints that exits with a code."""
    return lambda command, code: command_line.ends(command, code, monkeypatch, capfd)


@pytest.fixture
def fails(monkeypatch, capfd):
    """The one line that a command ends with."""
    return lambda command: command_line.fails(command, monkeypatch, capfd)
