"""Runs that the server takes for running although their processes are gone.

After a power cut nobody is left to say how a run ended, and it would keep its place in its queue
for ever.
"""

from __future__ import annotations

import psutil
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

from pipelines.orphan import NEXT

_OPEN = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
_WORKER = "prefect.worker.name"
"""The label of a run that tells which worker took it."""


async def end_left_over(client: PrefectClient, worker: str) -> list[str]:
    """Crash the runs that the worker of that name took and no process works on; their names.

    Runs of other workers, perhaps on other machines, are left alone.
    """
    state = FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN))
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=state))
    alive = worked_on()
    left = [run for run in runs if run.labels.get(_WORKER) == worker and str(run.id) not in alive]
    for run in left:
        message = f"the run's process ended together with its worker. {NEXT}"
        await client.set_flow_run_state(run.id, Crashed(message=message), force=True)
    return [run.name for run in left]


def worked_on() -> set[str]:
    """The ids of the runs whose engines live on this machine."""
    processes = [each.info for each in psutil.process_iter(["cmdline", "environ"])]
    engines = [each for each in processes if "prefect.engine" in (each["cmdline"] or ())]
    return {(each["environ"] or {}).get("PREFECT__FLOW_RUN_ID", "") for each in engines}
