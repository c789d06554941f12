"""What a command writes: no other command writes the same files at the same time."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from manymatch.cli.project import LAYOUT
from manymatch.util.locks import lock_path, locked

Command = TypeVar("Command", bound=Callable[..., None])
Files = Path | Callable[..., Path | Sequence[Path]]
"""A path, or a function that makes paths of arguments of the command, matched by name."""


def writes(*outputs: Files) -> Callable[[Command], Command]:
    """Make a function a command that holds the locks of its `outputs` while it runs: all files and
    folders that the command writes. If another process holds a lock, the command waits. Nothing is
    locked if the command makes a part (`--part`): parts have locks of their own.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            with contextlib.ExitStack() as locks:
                # Of the processes of `torchrun`, which work together, the first one locks.
                helps = "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK") != "0"
                if not helps and not given.get("part"):
                    # All processes take locks in this order, so that no two wait for each other.
                    for path in sorted({*paths_of(outputs, given)}):
                        locks.enter_context(locked(lock_path(path), path))
                command(**given)

        run.outputs = outputs  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate


def paths_of(files: Sequence[Files], given: Mapping[str, Any]) -> list[Path]:
    """The paths of `files`, for the arguments of a command."""
    paths: list[Path] = []
    for file in files:
        if callable(file):
            made = file(**{name: given[name] for name in inspect.signature(file).parameters})
            paths += [made] if isinstance(made, Path) else made
        else:
            paths.append(file)
    return paths


def result_files(dataset: str, preset: str) -> list[Path]:
    """The files of the result of a model."""
    result = LAYOUT.result(dataset, preset)
    return [result.full, result.metrics, result.provenance, result.run]


def show_result(dataset: str, name: str) -> None:
    """Print the metrics that a command has written."""
    from manymatch.reporting.page import gallery
    from manymatch.reporting.sections.leaderboard import both_ways
    from manymatch.reporting.table import Heading
    from manymatch.reporting.terminal import show
    from manymatch.results.metrics import Metrics, Provenance

    written = LAYOUT.result(dataset, name)
    size = gallery(Provenance.read(written.provenance))
    show([Heading(f"{dataset} {name}", size), both_ways(Metrics.read(written.full))], written.full)
