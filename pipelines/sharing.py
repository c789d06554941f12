"""Stages' outputs shared between machines through DVC's default remote.

`MANYMATCH_SHARE=1` in a worker's environment turns sharing on. Before a stage runs, DVC searches
the remote for a run of the stage with the same inputs and takes the outputs of that run. After a
stage has run, its outputs and its run cache are pushed. Nobody has to commit or merge `dvc.lock`.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dvc.fs import LocalFileSystem, RemoteMissingDepsError
from dvc.repo import Repo
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from manymatch.util.errors import ConfigError, ManyMatchError
from manymatch.util.packages import extra
from pipelines import process
from pipelines.graph import RemoteFailed, is_made

SHARE = "MANYMATCH_SHARE"
RETRY_DELAYS: list[float] = [10, 20, 40]
"""Seconds to wait before each new attempt, since a network may have failed."""


class PushFailed(ManyMatchError):
    """The outputs of a stage did not reach the remote."""


def shared(tell: Callable[[str], None]) -> bool:
    """Whether stages are shared; `tell` gets a warning if the remote is an empty folder.

    Raises:
        ConfigError: DVC has no default remote, or a package for the remote is missing.
    """
    value = os.environ.get(SHARE, "0")
    if value not in ("0", "1"):
        raise ConfigError(f"{SHARE}={value}: expected 1 or 0")
    if value == "0":
        return False
    with Repo(str(Path())) as repo:
        if not repo.config["core"].get("remote"):
            raise ConfigError(
                f"{SHARE}=1: DVC has no default remote. Add a remote that every machine reaches: "
                "dvc remote add --default shared URL"
            )
        try:
            remote = repo.cloud.get_remote()
        except (ImportError, RemoteMissingDepsError) as error:
            raise ConfigError(
                f"{SHARE}=1: DVC's remote: {error}. Install what SSH and S3 need: "
                f"pip install {extra('remotes')}"
            ) from None
        if isinstance(remote.fs, LocalFileSystem) and not any(Path(remote.path).glob("*")):
            tell(
                f"DVC's remote {remote.path} is empty. Either nothing was pushed yet, or the disk "
                "is not mounted. If it is not mounted, cancel this run: the run will compute "
                "outputs that the remote has."
            )
    return True


_network_task: Any = partial(
    task, cache_policy=NO_CACHE, retries=len(RETRY_DELAYS), retry_delay_seconds=RETRY_DELAYS
)
"""A task that is tried again, since the network may have failed."""


@_network_task(name="pull", task_run_name="pull {name}")
def pull(name: str) -> None:
    """Take the outputs of the stage `name` from the remote, if the stage is out of date and a
    machine has pushed them."""
    try:
        is_made(Path(), name, pull=True)
    except RemoteFailed as error:
        raise RemoteFailed(
            f"{error}. {name} was not run, because another machine may have its outputs. Start the "
            f"run again when the remote can be reached, or work without it: {SHARE}=0"
        ) from None


@_network_task(name="push", task_run_name="push {name}")
def push(name: str) -> None:
    """Push the outputs and the run cache of the stage `name` to the remote."""
    command = ["dvc", "--wait-for-lock", "push", "--run-cache", name]
    code, output = process.run(command, get_run_logger().info)
    if code:
        raise PushFailed(
            f"{name} is finished here, but could not be pushed: {' '.join(output[-1:])}. "
            "Start the run again to push it."
        )
