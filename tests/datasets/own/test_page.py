"""The commands of the page docs/own-data.md are understood. `test_ten_minutes` runs them."""

import re
import shlex

import pytest
import typer

from manymatch.cli.commands import app
from manymatch.datasets.own.forms import FORMATS


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "own-data.md").read_text(encoding="utf-8")


def test_every_command_and_form_is_known(page):
    commands = [line.partition(" #")[0] for line in re.findall(r"^ {4}manymatch (.+)$", page, re.M)]
    assert len(commands) >= 6
    group = typer.main.get_command(app)
    for text in commands:
        name, *words = shlex.split(text)
        group.commands[name].make_context(name, words)
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == set(FORMATS)
