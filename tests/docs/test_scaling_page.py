"""The page on several machines: commands, variables, deployments and files that it names exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml
from dvc.cli import parse_args

from manymatch.cli import app
from manymatch.system.parts import Part
from manymatch.training.torchrun import TORCHRUN
from pipelines.gpus import WANTED
from pipelines.serve import POOL
from pipelines.sharing import SHARE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text()
OWN = re.findall(r"^    manymatch (.+)$", PAGE, re.MULTILINE)
SHELL = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


def starting(program: str) -> list[str]:
    return [line.removeprefix(f"{program} ") for line in SHELL if line.startswith(f"{program} ")]


@pytest.mark.parametrize("text", OWN)
def test_the_command_line_takes_parts(text: str) -> None:
    name, *words = shlex.split(text)
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert Part.read(command.make_context(name, words).params["part"])


@pytest.mark.parametrize("text", starting("dvc"))
def test_dvc_takes_it(text: str) -> None:
    assert parse_args(shlex.split(text)).func


def test_variables_and_deployments_are_known() -> None:
    known = {SHARE, WANTED, TORCHRUN}
    assert set(re.findall(r"\bMANYMATCH_\w+", PAGE)) == known
    assert set(re.findall(r"--pool (\w+)", PAGE)) == {POOL}
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    known = {
        f"{deployment['entrypoint'].rpartition('.')[2]}/{deployment['name']}"
        for deployment in deployments
    }
    assert set(re.findall(r"deployment run (\S+)", PAGE)) <= known


def test_files_exist() -> None:
    for name in re.findall(r"\b(?:deploy|benchmarks)/[\w.]+\w", PAGE):
        assert (ROOT / name).is_file()
    for name in re.findall(r"`((?:Dockerfile|\w+\.(?:json|yaml)))`", PAGE):
        assert (ROOT / "deploy" / name).is_file() or (ROOT / name).is_file()
