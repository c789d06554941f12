"""Every name on the command line is checked before it becomes a path."""

import pytest
import typer

from manymatch.cli import commands

HOSTILE = [
    *("", ".", "..", "../flickr8k/vsepp", "/tmp/x", "a/b", "-x", ".hidden", "x.partial"),
    *("a\0b", "a\n", "\x1b[31m", "\u202e", "\udc80", "x" * 300),
]
"""Texts that are not names."""
NAMES = {
    *("dataset", "preset", "features", "split", "name", "part"),
    *("presets", "vectors"),  # several names
}
"""The parameters of commands that are names."""
GOOD = {"dataset": "scenes", "preset": "vsepp", "features": "lite0", "presets": "vsepp"}
GOOD |= {"source": "missing", "model": "missing", "to": "made", "indexes": "missing"}
COMMANDS = typer.main.get_command(commands.app).commands
PLACES = [
    (command, parameter.name)
    for command in COMMANDS
    for parameter in COMMANDS[command].params
    if parameter.name in NAMES
]
FIRST = {name: command for command, name in reversed(PLACES)}
"""A command for each parameter. The other commands have the same check for the parameter."""


@pytest.mark.parametrize(("command", "name"), PLACES)
def test_no_name_is_a_path(checkout, command, name, fails):
    before = sorted(checkout.rglob("*"))
    for value in HOSTILE if FIRST[name] == command else ("../flickr8k/vsepp",):
        options, arguments = [], []
        for part in COMMANDS[command].params:
            text = value if part.name == name else GOOD.get(part.name)
            if part.param_type_name == "argument" and text is not None:
                arguments.append(text)
            elif part.name == name or part.required:
                options.append(f"{part.opts[-1]}={text}")
        line = fails([command, *options, "--", *arguments])
        assert line.isprintable() and len(line) < 1100
        assert "is not a name" in line or "empty" in line or name == "part"
    assert sorted(checkout.rglob("*")) == before
