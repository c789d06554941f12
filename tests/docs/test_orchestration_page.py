"""The page on the service names what is there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from pipelines import flows, settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "orchestration.md").read_text()
COMMANDS = re.findall(r"^    (make|prefect) (.+)$", PAGE, re.MULTILINE)
DEPLOYMENTS = {
    each["name"]: each
    for each in yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
}


def test_every_deployment_is_described() -> None:
    table = PAGE.split("## Parameters")[0]
    for name in DEPLOYMENTS:
        assert table.count(f"`{name}`") >= 1, name


def test_the_targets_are_those_of_the_makefile() -> None:
    targets = [words for program, words in COMMANDS if program == "make"]
    assert targets == ["serve", "stop"]
    for target in targets:
        assert f"\n{target}: " in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("words", [words for program, words in COMMANDS if program == "prefect"])
def test_the_flow_takes_what_the_command_gives(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, run, name, *options = shlex.split(words)
    assert run == "run"
    deployment = DEPLOYMENTS[name]
    given = dict(text.split("=", 1) for text in options if "=" in text)
    parameters = {**deployment.get("parameters", {}), **{k: _value(v) for k, v in given.items()}}
    flow = getattr(flows, deployment["entrypoint"].rpartition(".")[2])
    checked = flow.validate_parameters(parameters)
    texts = flows._texts(checked.get("overrides", ""))
    assert len(settings.overridden(texts, Path("presets/scenes/cora.yaml"))) == len(texts)


def _value(text: str) -> object:
    """As `prefect deployment run` reads it."""
    try:
        return json.loads(text)
    except ValueError:
        return text
