"""The logs of runs: lines on progress, and no traceback for errors that a user can correct.

Prefect logs a traceback for every error. For an error with its own message the traceback would show
only how Prefect's functions call each other. A defect of this package keeps its traceback.
"""

from __future__ import annotations

import logging
from typing import Any

from prefect import get_run_logger
from prefect.exceptions import FailedRun

from manymatch.cli.run_watch import PROGRESS
from manymatch.util.errors import ManyMatchError

_RUNS = "prefect.flow_runs", "prefect.task_runs"


def speak_plainly() -> None:
    """Filter the logs of all runs of this process with `plain`."""
    for name in _RUNS:
        logging.getLogger(name).addFilter(plain)


def progress() -> logging.Logger:
    """The logger of the present run whose lines `prefect deployment run NAME --watch` shows."""
    logger: Any = get_run_logger()
    child: logging.Logger = logger.getChild(PROGRESS)
    return child


def plain(record: logging.LogRecord) -> bool:
    """Whether to log a record; the traceback of a `ManyMatchError` is removed from the record.

    Prefect's `FailedRun` only repeats how the run ended, so it is not logged.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None or isinstance(error, ManyMatchError):
        record.exc_info = None  # without an error, Prefect would log "NoneType: None"
    return not isinstance(error, FailedRun)
