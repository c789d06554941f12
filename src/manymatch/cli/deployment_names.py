"""`prefect deployment run train-cora --watch`: what Prefect's command lacks.

A plug-in of Prefect (entry point in the group `prefect.plugins`, switched on in `prefect.toml`). In
the command `prefect deployment run`, and nowhere else,

- the client looks a name without "/" up among all deployments;
- a new run is named after what it runs, `train-cora scenes/cora 1`, unless it is given a name;
- `--watch` shows the progress of the run.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.plugins import HookContext, register_hook
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manymatch.util.errors import first_line, nearest, printable
from manymatch.util.progress import say

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun, Log, State


READ, CREATE = "read_deployment_by_name", "create_flow_run_from_deployment"
"""The methods of Prefect's client that are replaced."""
_ALL = "all"
"""The value of the parameter `dataset` that names no data set."""


@register_hook
def setup_environment(*, ctx: HookContext) -> None:
    """Called by Prefect when any of its commands starts.

    If Prefect lacks one of the functions, nothing is replaced and a line says so.
    """
    if ("deployment", "run") not in zip(sys.argv, sys.argv[1:], strict=False):
        return
    from prefect.cli import deployment
    from prefect.client.orchestration import PrefectClient

    replaced = [(PrefectClient, READ), (PrefectClient, CREATE), (deployment, "watch_flow_run")]
    if missing := [name for owner, name in replaced if not hasattr(owner, name)]:
        say(
            f"Prefect has no '{missing[0]}': give FLOW/DEPLOYMENT as name, and see runs on the page"
        )
        return
    for name, wrapper in ((READ, resolving), (CREATE, naming)):
        setattr(PrefectClient, name, wrapper(getattr(PrefectClient, name)))
    deployment.watch_flow_run = watch_flow_run


def run_title(deployment: str, parameters: Mapping[str, Any]) -> str:
    """What a run runs: `train-cora scenes/cora`, `prepare-data scenes`, `report`."""
    names = [str(parameters[key]) for key in ("dataset", "preset") if parameters.get(key)]
    return " ".join([deployment, "/".join(name for name in names if name != _ALL)]).strip()


def earlier_runs(title: str) -> dict[str, Any]:
    """The filter of the runs that have this title."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName

    return {"flow_run_filter": FlowRunFilter(name=FlowRunFilterName(like_=f"{title} "))}


def naming(inner: Callable[..., Any]) -> Callable[..., Any]:
    """The creation of a run that gets its title and a number as its name."""

    async def create(self: Any, deployment_id: Any, **options: Any) -> Any:
        if options.get("name") is None:
            deployment = await self.read_deployment(deployment_id)
            schema = (deployment.parameter_openapi_schema or {}).get("properties", {})
            values = {key: field.get("default") for key, field in schema.items()}
            values |= deployment.parameters | (options.get("parameters") or {})
            title = run_title(deployment.name, values)
            number = await self.count_flow_runs(**earlier_runs(title)) + 1
            options["name"] = f"{title} {number}"
        return await inner(self, deployment_id, **options)

    return create


def resolving(inner: Callable[..., Any]) -> Callable[..., Any]:
    """The look-up of a deployment that also knows a name without its flow."""

    async def read(self: Any, name: str) -> Any:
        return await inner(self, name if "/" in name else await _full_name(self, name))

    return read


async def _full_name(client: Any, name: str) -> str:
    """FLOW/DEPLOYMENT of the one deployment called `name`; else the command ends with one line."""
    import httpx
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    # A server gives out so many deployments at a time: those of the name are asked for.
    called_so = DeploymentFilter(name=DeploymentFilterName(any_=[name]))
    try:
        deployments = await client.read_deployments(deployment_filter=called_so)
        flows = [(await client.read_flow(deployment.flow_id)).name for deployment in deployments]
        others = [] if deployments else await client.read_deployments()
    except httpx.ConnectError:
        raise SystemExit(f"error: no server at {client.api_url}; 'make serve' starts one") from None
    except (httpx.HTTPError, ValueError, ExceptionGroup) as error:
        # An invalid port raises a group of one exception.
        cause = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
        if isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code == 401:
            raise SystemExit(
                f"error: the server at {client.api_url} asks for a password. Run the command in "
                "the folder of 'make serve', without PREFECT_API_AUTH_STRING and PREFECT_PROFILE"
            ) from None
        raise SystemExit(
            f"error: {client.api_url} does not answer as Prefect's server does "
            f"({first_line(cause)}): see PREFECT_API_URL, or api.url in prefect.toml"
        ) from None
    full = sorted(f"{flow}/{name}" for flow in flows)
    if len(full) == 1:
        return full[0]
    if full:
        raise SystemExit(f"error: '{name}' is ambiguous, give one of: {', '.join(full)}")
    raise SystemExit(f"error: no deployment '{name}'{nearest(name, {o.name for o in others})}")


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
) -> "FlowRun":
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


async def _watch(client: "PrefectClient", run_id: UUID, console: Console) -> "FlowRun":
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
        if state and (what := _waiting_for(state, run)) and time.monotonic() > patience:
            patience = float("inf")
            _print(console, time.strftime("%H:%M:%S"), what, logging.INFO)


def _waiting_for(state: "State", run: "FlowRun") -> str | None:
    """What a run that has not begun waits for."""
    if state.is_pending():
        return "A worker starts the run."
    if state.is_scheduled():
        return (
            f"The run waits in the queue '{run.work_queue_name}' for another run to end, or for a "
            "worker ('make serve' starts one)."
        )
    return None


async def _new_logs(client: "PrefectClient", run_id: UUID, read: "dict[UUID, Log]") -> "list[Log]":
    """The lines of a run's log, and of its parts, that are not in `read` yet, where they are
    added."""
    from prefect.client.schemas import filters

    after = max((log.timestamp for log in read.values()), default=None)
    inside = filters.FlowRunFilterParentFlowRunId(any_=[run_id])
    within = await client.read_flow_runs(
        flow_run_filter=filters.FlowRunFilter(parent_flow_run_id=inside)
    )
    wanted = filters.LogFilter(
        flow_run_id=filters.LogFilterFlowRunId(any_=[run_id, *(run.id for run in within)]),
        timestamp=filters.LogFilterTimestamp(after_=after - _LATE if after else None),
    )
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
