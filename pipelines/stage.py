"""One stage of DVC as a Prefect task."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

import psutil
from prefect import Task, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from manymatch.system.errors import ManyMatchError
from pipelines import process, sharing

NETWORK = frozenset({"download"})
"""The kinds of stages that fetch from a network."""
_SHOWN = 12
"""Lines of output that the message of a failed stage repeats."""
_BUSY = re.compile(r"^\s+\(PID (\d+)\): ")
"""How DVC names a process that reads or writes what a stage needs."""
CACHED = "Cached"
"""The name of the state in which a stage ends that did not have to run."""


class StageFailed(ManyMatchError):
    """A stage that ended with an error."""


def run_stage(name: str, tell: Callable[[str], None], environment: Mapping[str, str]) -> str | None:
    """`dvc repro --single-item NAME`, its output passed to `tell`. It takes what DVC's cache has,
    such as outputs of another machine that were pulled (`sharing.py`).

    Waits where another process of DVC uses the stage's files, in this service or by hand. Returns
    why nothing had to run, or None if the stage ran; raises `StageFailed`.
    """
    command = ["dvc", "--wait-for-lock", "repro", "--single-item", name]
    while True:
        code, output = process.run_keeping(200, command, tell, environment)
        if code == 0:
            return _unchanged(output)
        if not (users := _busy(output)):
            raise StageFailed(_failure(name, code, output))
        if _is_up_to_date(name, environment):
            return "nothing that this stage depends on has changed, and others are using it"
        tell(f"{name} waits for process {', '.join(map(str, users))} of DVC to end")
        while any(map(psutil.pid_exists, users)):
            time.sleep(0.5)


def _is_up_to_date(name: str, environment: Mapping[str, str]) -> bool:
    """Whether the stage has nothing to do, which DVC tells even while others use its files.

    `repro` wants to write the outputs before it looks: without this, no run could pass the data
    stages as long as another run trains on the same data.
    """
    said: list[str] = []
    command = ["dvc", "--wait-for-lock", "status", "--json", name]
    return process.run(command, said.append, environment) == 0 and said[-1:] == ["{}"]


def _unchanged(output: list[str]) -> str | None:
    if any("didn't change, skipping" in line for line in output):
        return "nothing that this stage depends on has changed"
    if any("is cached - skipping run" in line for line in output):
        return "these inputs were run before: outputs are taken from DVC's cache"
    return None


def _busy(output: list[str]) -> list[int]:
    return sorted({int(found[1]) for line in output if (found := _BUSY.match(line))})


def _failure(name: str, code: int, output: list[str]) -> str:
    shown = "\n".join(output[-_SHOWN:])
    return (
        f"{name} failed (exit code {code}). Its last lines:\n{shown}\n"
        "Mend what they say and start the run again: finished stages are kept, and a stage goes "
        "on from its own checkpoints."
    )


@task(name="stage", task_run_name="{name}", cache_policy=NO_CACHE)
def stage(name: str, environment: dict[str, str], shared: bool) -> State:
    """Run one stage where it is out of date; else the task ends as Cached. If stages are `shared`,
    its outputs are pushed."""
    try:
        unchanged = run_stage(name, get_run_logger().info, environment)
    except StageFailed as failure:
        return Failed(message=str(failure))
    if shared:
        sharing.push_stage(name)
    if unchanged:
        return Completed(name=CACHED, message=unchanged)
    return Completed()


network_stage = stage.with_options(
    name="network stage",
    retries=len(sharing.RETRY_DELAYS),
    retry_delay_seconds=sharing.RETRY_DELAYS,
)
"""The same for a stage that fetches something: what failed may be the network."""


def task_of(kind: str) -> Task[[str, dict[str, str], bool], State]:
    """The task for a stage of that kind: only what fetches is tried again, training is not."""
    return network_stage if kind in NETWORK else stage
