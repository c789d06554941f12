"""One stage of DVC as a Prefect task, and the logs of runs.

Prefect logs a traceback for every error. For an error with its own message the traceback would show
only how Prefect's functions call each other. A defect of this package keeps its traceback.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
from prefect import Task, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.exceptions import FailedRun
from prefect.states import Completed, Failed

from manymatch.cli import killed_dvc
from manymatch.cli.deployment_names import PROGRESS
from manymatch.util.errors import ConfigError, ManyMatchError
from pipelines import process, sharing
from pipelines.artifacts import show_epochs
from pipelines.graph import is_unchanged

NETWORK = frozenset({"download"})
"""The kinds of stages that fetch from a network."""
RETRIES, _MOST_RETRIES = "MANYMATCH_RETRIES", 100
"""The environment variable with the number of times that a failed stage is tried again."""
_SHOWN = 12
"""Number of output lines in the message of a failed stage."""
_BUSY = re.compile(r"^\s+\(PID (\d+)\): ")
"""The line in which DVC names a process that uses a stage's files."""
CACHED = "Cached"
"""The name of the state of a stage that did not have to run."""
_UNCHANGED = "no dependency of this stage has changed"
_DVC = re.compile(
    r"\t|> |Running stage |Stage '|(Generating|Updating) lock file|To (track|enable) |Use `dvc push"
    "|Data and pipelines are up to date"
)
"""The lines of DVC among those of a stage."""


def plain(record: logging.LogRecord) -> bool:
    """Whether to log a record; the traceback of a `ManyMatchError` is removed from the record.

    Prefect's `FailedRun` only repeats how the run ended, so it is not logged.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None or isinstance(error, ManyMatchError):
        record.exc_info = None  # without an error, Prefect would log "NoneType: None"
    return not isinstance(error, FailedRun)


# In every process of a run, because this module is imported there.
for _name in ("prefect.flow_runs", "prefect.task_runs"):
    logging.getLogger(_name).addFilter(plain)


def progress() -> logging.Logger:
    """The logger of the present run whose lines `prefect deployment run NAME --watch` shows."""
    logger: Any = get_run_logger()
    child: logging.Logger = logger.getChild(PROGRESS)
    return child


class StageFailed(ManyMatchError):
    """A stage ended with an error; the message ends with the last lines of the output."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


def run_stage(name: str, tell: Callable[[str], None], environment: Mapping[str, str]) -> str | None:
    """Run `dvc repro --single-item NAME`, if necessary, and pass its output to `tell`.

    DVC uses outputs that its cache holds, such as pulled outputs of another machine (`sharing.py`).
    While another process of DVC uses the stage's files, this function waits.

    Returns:
        why nothing had to run, or None if the stage ran.

    Raises:
        StageFailed: the stage ended with an error.
    """
    command = ["dvc", "--wait-for-lock", "repro", "--single-item", name]
    errors: list[str] = []

    def sorted_out(line: str) -> None:
        (errors.append if line.startswith("ERROR: ") else tell)(line)

    while not is_unchanged(Path(), name):
        killed_dvc.mend(Path())
        errors.clear()
        code, output = process.run(command, sorted_out, environment)
        if code == 0:
            if any("is cached - skipping run" in line for line in output):
                return (
                    "the stage ran before with these inputs; its outputs are taken from DVC's cache"
                )
            return _UNCHANGED if any("didn't change, skipping" in line for line in output) else None
        users = sorted({int(match[1]) for line in output if (match := _BUSY.match(line))})
        if not users:  # else DVC calls a busy file a failure
            for line in errors:
                tell(line)
            shown = "\n".join([line for line in output if not _DVC.match(line)][-_SHOWN:])
            raise StageFailed(
                f"{name} failed (exit code {code}). Its last lines:\n{shown}\n"
                "Correct the error and start the run again. Finished stages are kept, and an "
                "unfinished stage continues from its own checkpoints."
            )
        if is_unchanged(Path(), name):
            break
        tell(f"{name} waits for the end of DVC's process {', '.join(map(str, users))}")
        while any(map(psutil.pid_exists, users)):
            time.sleep(0.5)
    return _UNCHANGED


def _tell(line: str) -> None:
    """Log a line of a stage as progress, and a line of DVC as Prefect logs its own."""
    logger = get_run_logger() if _DVC.match(line) else progress()
    logger.info(line)


@task(name="stage", task_run_name="{name}", cache_policy=NO_CACHE)
def stage(name: str, environment: dict[str, str], shared: bool) -> State:
    """Run one stage if it is out of date; else the task ends as Cached. If the project is `shared`,
    the outputs are pushed."""
    try:
        unchanged = run_stage(name, show_epochs(name, _tell), environment)
    except StageFailed as failure:
        return Failed(message=str(failure))
    if shared:
        sharing.push(name)
    return Completed(name=CACHED, message=unchanged) if unchanged else Completed()


network_stage = stage.with_options(
    name="network stage",
    retries=len(sharing.RETRY_DELAYS),
    retry_delay_seconds=sharing.RETRY_DELAYS,
)
"""The task of a stage that downloads; it is tried again, since the network may have failed."""


def task_of(kind: str) -> Task[[str, dict[str, str], bool], State]:
    """The task for a stage of that kind. Downloads are tried again, and other stages as often as
    the worker's environment says.

    Raises:
        ConfigError: the variable does not hold a small whole number.
    """
    if kind in NETWORK:
        return network_stage
    text = os.environ.get(RETRIES, "0")
    if not text.isdecimal() or int(text) > _MOST_RETRIES:
        raise ConfigError(f"{RETRIES}={text}: expected a whole number from 0 to {_MOST_RETRIES}")
    if not int(text):
        return stage
    return stage.with_options(retries=int(text), retry_delay_seconds=sharing.RETRY_DELAYS[0])
