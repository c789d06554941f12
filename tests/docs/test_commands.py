"""`manymatch` takes the commands on the pages about experiments, studies, protocols and search."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from manymatch.cli import app
from manymatch.config.layout import Layout
from manymatch.evaluation.protocols.suite import PROTOCOLS
from manymatch.experiments.experiment import Options
from manymatch.experiments.kinds import experiment_of_file, experiment_of_options
from manymatch.experiments.studies.study import STUDIES

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text()
    for name in ("experiments", "studies", "protocols", "search")
}
COMMANDS = [
    command
    for text in PAGES.values()
    for command in re.findall(r"^(?:    )?manymatch (.+)$", text, re.MULTILINE)
]


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 5


@pytest.mark.parametrize("text", COMMANDS)
def test_the_command_line_takes_it(text: str) -> None:
    name, *words = shlex.split(text)
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    values = command.make_context(name, words).params
    if name != "experiment":
        return
    subject, options = values["subject"], Options(seeds=values["seeds"])
    if subject.endswith(".yaml"):
        experiment_of_file(ROOT / subject, Layout(ROOT), options).check()
    else:
        options = replace(options, dataset=subject)
        of_options = experiment_of_options(values["presets"], values["over"], Layout(ROOT), options)
        of_options.check()


def test_the_file_on_the_page_is_an_experiment(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGES["experiments"], re.DOTALL | re.MULTILINE)
    path = tmp_path / "page.yaml"
    path.write_text(text, encoding="utf-8")
    for dataset in ("scenes", "flickr8k", "cub", "coco"):
        experiment_of_file(path, Layout(ROOT), Options(dataset=dataset)).check()


def test_every_study_is_described() -> None:
    for name in STUDIES:
        assert PAGES["studies"].count(f"| `{name}` |") == 2


def test_every_protocol_is_described() -> None:
    for name in PROTOCOLS:
        assert PAGES["protocols"].count(f"| `{name}` |") == 1
