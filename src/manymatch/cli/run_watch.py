"""What `prefect deployment run NAME --watch` shows: the stages, their own lines, how the run ended.

Prefect's command shows its events alone. The plug-in (`deployment_names.py`) puts the function of
this module in the place of Prefect's, which has the same arguments and the same result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
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
            return await _Watch(client, flow_run_id, console).wait()
    except TimeoutError:
        raise FlowRunWaitTimeout(f"the run has not ended after {timeout} seconds") from None


class _Watch:
    def __init__(self, client: PrefectClient, run_id: UUID, console: Console) -> None:
        self._client = client
        self._run_id = run_id
        self._console = console
        self._read: dict[UUID, Log] = {}
        self._began = time.monotonic()
        self._waiting_told = False

    async def wait(self) -> FlowRun:
        while True:
            run = await self._client.read_flow_run(self._run_id)
            ended = run.state if run.state and run.state.is_final() else None
            # The last lines may reach the server after the state.
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS * (2 if ended else 1))
            async for log in self._new_logs():
                warning = log.level >= logging.WARNING and log.name not in _PREFECT_LOGGERS
                if warning or log.name.endswith(f".{PROGRESS}"):
                    self._print(f"{log.timestamp.astimezone():%H:%M:%S}", log.message, log.level)
            if ended:
                level = logging.INFO if ended.is_completed() else logging.ERROR
                self._print("", ended.message or "", level)
                return run
            self._tell_waiting(run)

    async def _new_logs(self) -> AsyncIterator[Log]:
        from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId, LogFilterTimestamp

        after = max((log.timestamp for log in self._read.values()), default=None)
        run = LogFilterFlowRunId(any_=[self._run_id])
        later = LogFilterTimestamp(after_=after - _LATE if after else None)
        new_logs = LogFilter(flow_run_id=run, timestamp=later)
        offset = 0
        while page := await self._client.read_logs(new_logs, limit=_PAGE, offset=offset):
            for log in page:
                if log.id not in self._read:
                    self._read[log.id] = log
                    yield log
            offset += len(page)

    def _tell_waiting(self, run: FlowRun) -> None:
        waits = run.state is not None and (run.state.is_scheduled() or run.state.is_pending())
        if waits and not self._waiting_told and time.monotonic() - self._began > _PATIENCE:
            self._waiting_told = True
            self._print(
                f"{time.strftime('%H:%M:%S')}",
                f"The run waits in the queue '{run.work_queue_name}' for another run to end, or "
                "for a worker ('make serve' starts one).",
                logging.INFO,
            )

    def _print(self, moment: str, message: str, level: int) -> None:
        lines = [printable(line.expandtabs()) for line in message.splitlines()]
        style = "red" if level >= logging.ERROR else "yellow" if level >= logging.WARNING else ""
        text = Text("\n".join(lines), style)
        if self._console.is_terminal:
            row = Table.grid(padding=(0, 1))
            row.add_column(no_wrap=True, style="dim")
            row.add_row(moment, text)
            self._console.print(row)
        else:
            self._console.print(f"{moment} " if moment else "", text, sep="", soft_wrap=True)
