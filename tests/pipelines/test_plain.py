"""A user's fault is told without a traceback, a defect with one."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from prefect.exceptions import FailedRun

from manymatch.util.errors import ConfigError
from pipelines import flows, parts
from pipelines.plain import plain


@pytest.mark.parametrize(
    ("error", "logged", "traceback"),
    [
        (ConfigError("no such method"), True, False),
        (None, True, False),
        (FailedRun("no such method"), False, True),
        (KeyError("method"), True, True),
    ],
)
def test_only_a_defect_has_a_traceback(
    error: Exception | None, logged: bool, traceback: bool
) -> None:
    """Records as Prefect logs an error, or a state that tells of a fault."""
    info: Any = (type(error), error, None) if error else (None, None, None)
    record = logging.LogRecord("prefect.flow_runs", logging.ERROR, "", 1, "failed", (), info)
    assert (plain(record), bool(record.exc_info)) == (logged, traceback)


def test_flows_and_parts_speak_plainly() -> None:
    assert flows and parts
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        assert plain in logging.getLogger(name).filters
