"""What a command writes: no other command writes the same files at the same time."""

import contextlib
import functools
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import manymatch
from manymatch.cli.project import LAYOUT
from manymatch.util.locks import lock_path, locked
from manymatch.util.progress import say

Command = TypeVar("Command", bound=Callable[..., None])
Files = Path | Callable[..., Path | Sequence[Path]]
"""A path, or a function that makes paths of arguments of the command, matched by name."""

_SETTINGS = LAYOUT.params, LAYOUT.presets, Path(manymatch.__file__).parent
"""What every command reads."""


def writes(*outputs: Files, reads: Sequence[Files] | None = None) -> Callable[[Command], Command]:
    """Make a function a command that holds the locks of its `outputs` while it runs.

    If another process holds a lock, the command waits. If that process has finished the same
    command with the same inputs meanwhile, this command has nothing left to do.

    Args:
        outputs: all files and folders that the command writes. None of them is locked if the
            command makes a part (`--part`): parts have locks of their own.
        reads: all inputs of the command besides settings and code. None: the command always does
            its work.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            paths = [] if given.get("part") else sorted({*paths_of(outputs, given)})
            work = "" if reads is None else _work(command.__name__, given, paths_of(reads, given))
            with _locked_all(paths, work) as finished:
                if finished and all(path.exists() for path in paths):
                    say(f"{paths[0]}: another process has done this work; nothing is left to do")
                else:
                    command(**given)

        run.outputs = outputs  # type: ignore[attr-defined]
        return run  # type: ignore[return-value]

    return decorate


@contextlib.contextmanager
def _locked_all(paths: Sequence[Path], work: str) -> Iterator[bool]:
    """Hold the locks of all `paths`; yields whether another process finished `work` meanwhile.

    Only the first of the processes of `torchrun` holds the locks, for all of them. The processes
    work together, so none of them may find its work done. Other processes that a command starts
    (`training.helpers`, workers) do not run the command, so that they never wait for its locks.
    """
    several = "TORCHELASTIC_RUN_ID" in os.environ
    if several and os.environ.get("RANK") != "0":
        yield False
        return
    with contextlib.ExitStack() as stack:
        # All processes take the locks in this order, so that no two wait for each other.
        finished = [stack.enter_context(locked(lock_path(path), path, work)) for path in paths]
        yield any(finished) and not several


def _work(name: str, given: Mapping[str, Any], reads: Sequence[Path]) -> str:
    """Hash of the command, its arguments, and name, size and time of change of every file that the
    command reads; temporary files do not count."""
    states = []
    for path in (*_SETTINGS, *reads):
        files = [path]
        for folder, folders, names in os.walk(path):
            folders[:] = (name for name in sorted(folders) if _counts(name))
            files += [Path(folder, name) for name in sorted(names) if _counts(name)]
        for file in files:
            with contextlib.suppress(OSError):  # the command itself says what is wrong
                state = file.stat()
                own = file.is_file()
                states.append((str(file), own and state.st_size, own and state.st_mtime_ns))
    text = json.dumps([name, given, states], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _counts(name: str) -> bool:
    return not name.endswith((".partial", "__pycache__"))


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


def all_shards(dataset: str) -> Path:
    """The folder of the shards of a data set, with all kinds of features."""
    return LAYOUT.shards(dataset, "")


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
