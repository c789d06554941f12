"""Logs of runs that failed by a fault of a user, or of a stage: what is wrong, and no traceback.

Prefect logs one at every error; here it would only tell how Prefect's own functions call each
other. A defect of ours keeps its traceback.
"""

from __future__ import annotations

import logging

from prefect.exceptions import FailedRun

from manymatch.system.errors import ManyMatchError

_RUNS = "prefect.flow_runs", "prefect.task_runs"


def speak_plainly() -> None:
    """Let the logs of all runs of this process pass through `plain`."""
    for name in _RUNS:
        logging.getLogger(name).addFilter(plain)


def plain(record: logging.LogRecord) -> bool:
    """Whether a record is to be logged; the traceback of a fault that has its own words is taken
    from it. By `FailedRun` Prefect repeats how the run ended, which its log has already."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None or isinstance(error, ManyMatchError):
        record.exc_info = None  # where there is no error, Prefect would log "NoneType: None"
    return not isinstance(error, FailedRun)
