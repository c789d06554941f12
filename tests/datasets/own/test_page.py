"""The page docs/own-data.md is followed to the letter, and its other commands are understood."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from own_forms import Birds
from workspace import Workspace

from manymatch.cli.commands import app
from manymatch.datasets.own.forms import FORMATS


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "own-data.md").read_text(encoding="utf-8")


def test_every_command_and_form_is_known(page: str) -> None:
    commands = [line.partition(" #")[0] for line in re.findall(r"^ {4}manymatch (.+)$", page, re.M)]
    assert len(commands) >= 6
    group = typer.main.get_command(app)
    for text in commands:
        name, *words = shlex.split(text)
        group.commands[name].make_context(name, words)  # type: ignore[attr-defined]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == set(FORMATS)


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_a_search(
    page: str, new_workspace: Callable[[], Workspace]
) -> None:
    workspace = new_workspace()
    made = Birds(workspace.folder)
    made.table(workspace.folder / "captions.csv")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    init, repro, *search = block.splitlines()
    workspace.run(*shlex.split(init))
    workspace.edit("presets/birds/vsepp.yaml", {"training.epochs": 2})
    workspace.run(*shlex.split(repro))
    output = workspace.run_all(*search)
    assert len(re.findall(r"bird\d+\.jpg", output)) == 5
    result = workspace.folder / "reports" / "results" / "birds" / "vsepp.json"
    assert json.loads(result.read_text())["rsum"] > 0
