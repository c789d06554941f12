"""A user's fault is told without a traceback, a defect with one."""

from __future__ import annotations

import logging

import pytest
from prefect.exceptions import FailedRun

from manymatch.system.errors import ConfigError
from pipelines import flows, parts
from pipelines.plain import plain


def record(error: Exception | None) -> logging.LogRecord:
    """As Prefect logs an error, or a state that tells of a fault."""
    result = (type(error), error, None) if error else (None, None, None)
    return logging.LogRecord("prefect.flow_runs", logging.ERROR, "", 1, "failed", (), result)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [ConfigError("no such method"), None])
def test_a_fault_with_its_own_words_has_no_traceback(error: Exception | None) -> None:
    message = record(error)
    assert plain(message) and not message.exc_info


def test_how_a_run_ended_is_not_said_twice() -> None:
    assert not plain(record(FailedRun("no such method")))


def test_a_defect_keeps_its_traceback() -> None:
    message = record(KeyError("method"))
    assert plain(message) and message.exc_info


def test_flows_and_parts_speak_plainly() -> None:
    assert flows and parts
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        assert plain in logging.getLogger(name).filters
