"""Heavy stages in parts, side by side on a Dask cluster. The stage itself then joins the parts.

A part is `manymatch STAGE ... --part K/N` (`src/manymatch/util/parts.py`). A worker of the
cluster makes a part in its own checkout. All checkouts must have the same inputs and share the
folder `data/parts`. Parts of shards at a URL (`src/manymatch/shards/remote_writing.py`) share the
URL instead, and the last part joins them.
"""

import logging
import shlex
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import distributed
from distributed.comm import get_address_host_port
from prefect import flow, task, unmapped
from prefect.cache_policies import NO_CACHE
from prefect.futures import wait
from prefect.task_runners import TaskRunner
from prefect_dask import DaskTaskRunner

from manymatch.util.errors import ConfigError
from pipelines import process
from pipelines.graph import Stage, is_made
from pipelines.stage import StageFailed, progress

HEAVY = frozenset({"features", "scene_graphs", "shards", "index"})
"""The kinds of stages whose command takes `--part`."""
LOCAL = {
    # Threads suffice, because they start processes that do the work.
    "processes": False,
    "n_workers": 1,
    # Dask always serves its pages; only this machine may reach them.
    "dashboard_address": "127.0.0.1:0",
    "worker_dashboard_address": "127.0.0.1:0",
}


def has_to_run(stage: Stage) -> bool:
    """Whether the stage is heavy and its outputs are not there."""
    return stage.kind in HEAVY and not is_made(Path(), stage.name, pull=False)


def dividing(
    parts: int, cluster: str, chosen: Callable[[Stage], bool] = has_to_run
) -> Callable[[Stage, Mapping[str, str]], None]:
    """A function to call before each stage: it makes the parts of a stage that is `chosen`.

    Args:
        parts: the number of parts.
        cluster: the address of a Dask scheduler. "" makes the parts on this machine, in the
            environment of the run; the workers of a cluster have their own environment.

    Raises:
        ConfigError: no scheduler answers at this address.
    """
    try:
        if cluster:
            socket.create_connection(get_address_host_port(cluster), timeout=5).close()
    except ValueError:
        raise ConfigError(f"cluster={cluster}: expected tcp://HOST:PORT") from None
    except OSError as error:
        raise ConfigError(
            f"cluster={cluster}: no Dask scheduler can be reached there ({error}). Start it, or "
            "leave out 'cluster' to make the parts on this machine."
        ) from None

    def divide(stage: Stage, environment: Mapping[str, str]) -> None:
        if chosen(stage):
            divided.with_options(task_runner=runner(cluster, parts))(
                stage.name, stage.command, parts, {} if cluster else dict(environment)
            )

    return divide


def runner(cluster: str, parts: int) -> TaskRunner[Any]:
    """What runs the parts: a cluster, or threads of this process."""
    if cluster:
        return DaskTaskRunner(address=cluster)
    logging.getLogger("distributed").setLevel(logging.WARNING)  # it logs every connection
    return DaskTaskRunner(cluster_kwargs={**LOCAL, "threads_per_worker": parts})


@flow(flow_run_name="{stage} in {parts} parts")
def divided(stage: str, command: str, parts: int, environment: dict[str, str]) -> None:
    """Make all parts of a stage; `StageFailed` if a part cannot be made."""
    numbers = list(range(1, parts + 1))
    futures = part.map(unmapped(command), numbers, unmapped(parts), unmapped(environment))
    wait(futures)
    for future in futures:
        future.result()


@task(name="part", task_run_name="part {number} of {parts}", cache_policy=NO_CACHE)
def part(command: str, number: int, parts: int, environment: dict[str, str]) -> None:
    """Make one part and log its output line by line, with the number of the part."""
    whole, logger = f"{command} --part {number}/{parts}", progress()

    def tell(line: str) -> None:
        logger.info("part %d/%d: %s", number, parts, line)

    code, output = process.run(shlex.split(whole), tell, environment, wanted=wanted(), kept=12)
    if code:
        raise StageFailed(f"{whole} failed (exit code {code}):\n" + "\n".join(output))


def wanted() -> Callable[[], bool]:
    """A function that says whether a run still waits for this task of a Dask worker. The scheduler
    drops the task when the run is cancelled or its process is killed."""
    worker = distributed.get_worker()
    key = worker.get_current_task()

    def is_executing() -> bool:
        current = worker.state.tasks.get(key)
        return current is not None and current.state == "executing"

    return is_executing
