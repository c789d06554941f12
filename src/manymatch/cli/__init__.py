"""The command line: every stage of dvc.yaml is a subcommand that runs alone.

A command imports its libraries when it runs, so `--help` and small stages start at once.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from manymatch.cli import check, code, data, models, results, studies
from manymatch.system.errors import ManyMatchError
from manymatch.system.parent import end_with_dvc
from manymatch.system.progress import say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Image-text retrieval where an image has many captions and a caption many images. "
    "Run the whole pipeline with 'dvc repro'; each stage below also runs by hand, in the folder "
    "that holds params.yaml.",
)
for _group in (check, code, data, models, studies, results):
    app.add_typer(_group.commands)

_INTERRUPTED = 130
"""Typer ends an interrupted command with this exit code and prints no message."""


def main() -> None:
    """Run the command line; a user's error is printed in one line, with exit code 1."""
    end_with_dvc()
    try:
        app()
    except ManyMatchError as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        _interrupted()


def _interrupted() -> NoReturn:
    say("interrupted; finished work is kept. Run the same command to go on.")
    sys.exit(_INTERRUPTED)
