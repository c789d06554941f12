"""Runs without their worker. A run ends with its worker, because without the worker nobody could
see or cancel the run.

After a power cut no process is left to report how a run ended: the server counts the run as
running, and the run would block its queue for ever.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

import psutil
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

from manymatch.util.parent import call_when_parent_ends
from pipelines.engine import STARTER

_OPEN = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
_NEXT = (
    "Next: start a new worker with 'make serve', then start the same run again. An unfinished "
    "stage continues from its own checkpoints."
)


async def end_crashed_runs(client: PrefectClient, worker: str) -> list[str]:
    """Set the runs of `worker` that have no process to Crashed; returns their names.

    Runs of other workers, which may be on other machines, are left alone.
    """
    state = FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN))
    runs = await client.read_flow_runs(flow_run_filter=FlowRunFilter(state=state))
    alive, names = running_ids(), []
    for run in runs:
        # This label of a run names its worker.
        if run.labels.get("prefect.worker.name") == worker and str(run.id) not in alive:
            message = f"the run's process ended together with its worker. {_NEXT}"
            await client.set_flow_run_state(run.id, Crashed(message=message), force=True)
            names.append(run.name)
    return names


def running_ids() -> set[str]:
    """The ids of the runs that have an engine process on this machine."""
    processes = [process.info for process in psutil.process_iter(["cmdline", "environ"])]
    engines = [facts for facts in processes if "prefect.engine" in (facts["cmdline"] or ())]
    return {(facts["environ"] or {}).get("PREFECT__FLOW_RUN_ID", "") for facts in engines}


@contextlib.contextmanager
def ended_with_worker(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, terminate this process if the worker that started it ends.

    Prefect turns the signal into the state Crashed. A process without a worker is left alone.
    """
    if STARTER not in os.environ:
        yield
        return

    def end() -> None:
        tell(f"the worker has ended, and so does the run. {_NEXT}")
        os.kill(os.getpid(), signal.SIGTERM)

    # `pipelines/engine.py` is the parent of this process until it or its worker ends.
    watch = call_when_parent_ends(end, int(os.environ[STARTER]))
    try:
        yield
    finally:
        watch.set()
