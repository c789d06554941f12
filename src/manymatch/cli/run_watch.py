"""What `prefect deployment run NAME --watch` shows: the stages, their own lines, how the run ended.

Prefect's command shows its events alone. The plug-in (`deployment_names.py`) puts the function of
this module in the place of Prefect's, which has the same arguments and the same result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from rich.console import Console
from rich.table import Table
from rich.text import Text

from manymatch.util.errors import printable

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun, Log

PROGRESS = "progress"
"""The last part of the name of the loggers whose lines are for the person who watches."""
_SECONDS_BETWEEN_LOOKS = 1.0
_PATIENCE = 10.0
"""Seconds after which a run that has not started says what it waits for."""
_LATE = timedelta(seconds=10)
"""The most by which a line of the log reaches the server after a younger line."""
_PREFECT_LOGGERS = "prefect.flow_runs", "prefect.task_runs"
"""The loggers in which Prefect repeats how runs and stages end."""
_PAGE = 200
"""The most lines that the server gives at once."""


async def watch_flow_run(
    flow_run_id: UUID, console: Console, timeout: float | None = None
) -> FlowRun:
    """Show the progress of a run until it ends.

    Args:
        flow_run_id: the run.
        console: where to print.
        timeout: the most seconds to watch; None: until the run ends.

    Returns:
        the finished run.

    Raises:
        FlowRunWaitTimeout: the run has not ended after `timeout` seconds.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import FlowRunWaitTimeout

    try:
        async with asyncio.timeout(timeout), get_client() as client:
            return await _watch(client, flow_run_id, console)
    except TimeoutError:
        raise FlowRunWaitTimeout(f"the run has not ended after {timeout} seconds") from None


async def _watch(client: PrefectClient, run_id: UUID, console: Console) -> FlowRun:
    read: dict[UUID, Log] = {}
    patience: float = time.monotonic() + _PATIENCE
    while True:
        run = await client.read_flow_run(run_id)
        state = run.state
        ended = state if state and state.is_final() else None
        # The last lines may reach the server after the state.
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS * (2 if ended else 1))
        for log in await _new_logs(client, run_id, read):
            warning = log.level >= logging.WARNING and log.name not in _PREFECT_LOGGERS
            if warning or log.name.endswith(f".{PROGRESS}"):
                _print(console, f"{log.timestamp.astimezone():%H:%M:%S}", log.message, log.level)
        if ended:
            level = logging.INFO if ended.is_completed() else logging.ERROR
            _print(console, "", ended.message or "", level)
            return run
        waits = state and (state.is_scheduled() or state.is_pending())
        if waits and time.monotonic() > patience:
            patience = float("inf")
            what = (
                f"The run waits in the queue '{run.work_queue_name}' for another run to end, or "
                "for a worker ('make serve' starts one)."
            )
            _print(console, time.strftime("%H:%M:%S"), what, logging.INFO)


async def _new_logs(client: PrefectClient, run_id: UUID, read: dict[UUID, Log]) -> list[Log]:
    """The lines of a run's log that are not in `read` yet, where they are added."""
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterTimestamp

    after = max((log.timestamp for log in read.values()), default=None)
    run = LogFilterFlowRunId(any_=[run_id])
    later = LogFilterTimestamp(after_=after - _LATE if after else None)
    wanted = LogFilter(flow_run_id=run, timestamp=later)
    logs: list[Log] = []
    while page := await client.read_logs(wanted, limit=_PAGE, offset=len(logs)):
        logs += page
    new = [log for log in logs if log.id not in read]
    read |= {log.id: log for log in new}
    return new


def _print(console: Console, moment: str, message: str, level: int) -> None:
    lines = [printable(line.expandtabs()) for line in message.splitlines()]
    style = "red" if level >= logging.ERROR else "yellow" if level >= logging.WARNING else ""
    text = Text("\n".join(lines), style)
    if console.is_terminal:
        row = Table.grid(padding=(0, 1))
        row.add_column(no_wrap=True, style="dim")
        row.add_row(moment, text)
        console.print(row)
    else:
        console.print(f"{moment} " if moment else "", text, sep="", soft_wrap=True)
