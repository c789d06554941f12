"""The command line: every stage of dvc.yaml is a subcommand that runs alone.

A command imports its libraries when it runs, so `--help` and small stages start at once.
"""

import contextlib
import gc
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer

from manymatch import __version__
from manymatch.cli import (
    backbone,
    check,
    code,
    data,
    experiments,
    explore,
    external,
    init,
    models,
    plan,
    project,
    search,
    versions,
)
from manymatch.cli.outputs import writes
from manymatch.cli.project import LAYOUT
from manymatch.util import files
from manymatch.util.errors import ConfigError, ManyMatchError, memory_fault
from manymatch.util.files import fault_number, storage_error
from manymatch.util.interrupts import interrupted_by_sigterm
from manymatch.util.parent import end_with_dvc
from manymatch.util.progress import say, working

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Image-text retrieval where an image has many captions and a caption many images. "
    "Run the whole pipeline with 'dvc repro'; each stage below also runs by hand, in the folder "
    "that holds params.yaml.",
)
commands = typer.Typer()

_INTERRUPTED = 130
"""Typer ends an interrupted command with this exit code and prints no message."""
_EMPTY = re.compile(r"|--[a-z-]+=")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What stands for a byte in a name that is not UTF-8."""
_MANY_OBJECTS = 100_000
"""New objects after which garbage is searched during loading. Nearly all objects that an import
makes stay, and Python's usual search after 700 takes a fifth of the time of loading."""


_REPORT = "index.html", "pages", "plots", "leaderboard.csv", "leaderboard.md", "leaderboard.tex"


@commands.command()
@writes(*(LAYOUT.reports / name for name in _REPORT))
def report() -> None:
    """Write reports/index.html, reports/pages and the leaderboard from all results."""
    from manymatch.reporting import report as stage

    project.require_project()
    stage.report(LAYOUT.reports, LAYOUT.plans, LAYOUT.presets)
    say(f"{LAYOUT.reports / 'index.html'}: the report; 'manymatch results' prints the table")


@commands.command()
def results(
    experiments: Annotated[
        bool, typer.Option("--experiments", help="Print the experiments of 'dvc exp run' instead.")
    ] = False,
) -> None:
    """Print the table of the trained models, where the report is, and how to go on."""
    from manymatch.cli.dvc_experiments import experiments_table
    from manymatch.reporting.sections import leaderboard
    from manymatch.reporting.terminal import show
    from manymatch.results.runs import read_runs

    project.require_project()
    if experiments:
        show([experiments_table()])
        return
    runs = read_runs(LAYOUT.reports)
    trained = [run for run in runs if LAYOUT.model(run.dataset, run.preset).is_dir()]
    # The data set that was trained last is the one to go on with: an rsum of another is no rival.
    trained.sort(key=lambda run: LAYOUT.model(run.dataset, run.preset).stat().st_mtime)
    rivals = [run for run in trained if run.dataset == trained[-1].dataset]
    best = max(rivals, key=lambda run: run.metrics.rsum, default=None)
    page = LAYOUT.reports / "index.html"
    show(leaderboard.blocks(runs), page if page.is_file() else None)
    if best is not None:
        model = LAYOUT.model(best.dataset, best.preset)
        shards = LAYOUT.shards(best.dataset, best.provenance.features)
        typer.echo(
            f"\nTo go on:\n"
            f"  manymatch index {shards} --model {model} --to {best.dataset}.index\n"
            f"  manymatch serve {best.dataset}.index\n"
            f"  manymatch demo"
        )


@commands.command()
@writes(Path("README.md"), Path("docs/results.md"))
def readme() -> None:
    """Copy tables and figures of experiments into docs/results.md and README.md."""
    from manymatch.reporting.readme import update_pages

    project.require_project()
    update_pages([Path("README.md"), Path("docs/results.md")], LAYOUT.reports)


@commands.command("plots-page")
@writes(LAYOUT.plots_page)
def plots_page() -> None:
    """Write .dvc/plots.html, with which 'dvc plots show' needs no network.

    'dvc config --local plots.html_template plots.html' makes DVC use the page.
    """
    from manymatch.reporting.report import offline_page

    files.write_text(LAYOUT.plots_page, offline_page())


@commands.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


_PANELS = {
    "Use a model": "demo index search serve",
    "Train and compare": "init backbone check plan train evaluate results explore export "
    "experiment tune ensemble rerank ids score probe clusters efficiency",
    "Stages of the pipeline": "code download captions features scene-graphs shards report",
    "Maintenance": "import-howto100m readme plots-page version",
}
"""The commands of each group of `--help`, in their order."""


def _add_commands() -> None:
    """Give `app` the commands of all modules, in the order of `_PANELS`."""
    parts = init, backbone, check, plan, code, data, models, external, experiments, explore, search
    by_name = {
        one.name or str(getattr(one.callback, "__name__", "")): one
        for group in (commands, *(part.commands for part in parts))
        for one in group.registered_commands
    }
    for panel, names in _PANELS.items():
        for name in names.split():
            by_name[name].rich_help_panel = panel
            app.registered_commands.append(by_name.pop(name))
    app.add_typer(versions.commands, name="models", rich_help_panel="Use a model")
    assert not by_name, f"commands of no group: {', '.join(by_name)}"


_add_commands()


def main() -> None:
    """Run the command line; a user's error is printed in one line, with exit code 1.

    Faults of the file system count as a user's errors, because the file's name says more than a
    traceback.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")  # an arrow is no reason to fail
    end_with_dvc()
    try:
        _refuse_unreadable(sys.argv[1:])
        with interrupted_by_sigterm(), loading(" ".join(sys.argv[1:])):
            app()
    except ManyMatchError as error:
        _failed(error)
    except OSError as error:
        if fault_number(error) is None:
            raise
        _failed(storage_error(error))
    except UnicodeEncodeError as error:
        if not _NOT_UTF8.search(error.object):
            raise
        _failed(ManyMatchError(f"{error.object}: a name that is not UTF-8. Rename the file"))
    except (MemoryError, RuntimeError, ImportError) as error:
        what = memory_fault(error)
        if not what:
            raise
        _failed(
            ManyMatchError(
                f"the memory is not enough ({what}). Lower sizes or numbers, or raise the limits "
                "of the shell (ulimit)"
            )
        )
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        _interrupted()


def _open_closed_streams() -> None:
    """Let the streams that the starter of this process has closed (`2>&-`) read and write nothing.
    Without this function, the next file that is opened would take the number of a closed stream,
    and libraries would write their messages to the file."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def _refuse_unreadable(arguments: list[str]) -> None:
    """Refuse letters that Python cannot read, with PYTHONUTF8=0 and a locale of ASCII, and an empty
    text, such as that of an unset variable of the shell, which is not the default."""
    names = sys.getfilesystemencoding()
    if names != "utf-8" and not all(map(str.isascii, arguments)):
        raise ConfigError(f"Python reads names and texts as {names}. Set PYTHONUTF8=1.")
    for before, argument in pairwise(["manymatch", *arguments]):
        if _EMPTY.fullmatch(argument):
            place = argument or f"after '{before}'"
            raise ConfigError(f"{place}: the value is empty. Give a value, or leave it out.")


def _failed(error: ManyMatchError) -> NoReturn:
    say(f"error: {error}")
    try:
        sys.stdout.flush()
    except OSError:  # Python would print a traceback and exit with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)


def _interrupted() -> NoReturn:
    say("interrupted; finished work is kept. Run the same command to go on.")
    sys.exit(_INTERRUPTED)


class _Watched:
    """A stream that calls `announce` before the main thread writes."""

    def __init__(self, stream: TextIO, announce: Callable[[], None]) -> None:
        self._stream, self._announce = stream, announce

    def write(self, text: str) -> int:
        if threading.current_thread() is threading.main_thread():
            self._announce()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def loading(command: str) -> Iterator[None]:
    """Say after ten seconds, then at most every minute, that `command` loads its libraries and
    inputs, until the command itself prints something on standard error or begins a step. Meanwhile
    garbage is searched seldom."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(working(f"{command}: loading libraries and inputs"))
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(_MANY_OBJECTS)
        watched: Any = _Watched(sys.stderr, stack.close)
        with contextlib.redirect_stderr(watched):
            yield
