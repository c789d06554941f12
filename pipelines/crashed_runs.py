"""Runs that the server counts as running although their processes are gone.

After a power cut no process is left to report how a run ended. The run would block its queue for
ever.
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
"""The label of a run that names its worker."""


async def end_crashed_runs(client: PrefectClient, worker: str) -> list[str]:
    """Set the runs of `worker` that have no process to Crashed; returns their names.

    Runs of other workers, which may be on other machines, are left alone.
    """
    state = FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN))
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=state))
    alive = running_ids()
    dead = [run for run in runs if run.labels.get(_WORKER) == worker and str(run.id) not in alive]
    for run in dead:
        message = f"the run's process ended together with its worker. {NEXT}"
        await client.set_flow_run_state(run.id, Crashed(message=message), force=True)
    return [run.name for run in dead]


def running_ids() -> set[str]:
    """The ids of the runs that have an engine process on this machine."""
    processes = [process.info for process in psutil.process_iter(["cmdline", "environ"])]
    engines = [facts for facts in processes if "prefect.engine" in (facts["cmdline"] or ())]
    return {(facts["environ"] or {}).get("PREFECT__FLOW_RUN_ID", "") for facts in engines}
