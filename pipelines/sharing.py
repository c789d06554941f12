"""Stages' outputs shared between machines through DVC's default remote.

`MANYMATCH_SHARE=1` in a worker's environment turns it on. Before a stage runs, DVC looks in the
remote whether it ran anywhere with the same inputs, and takes its outputs from there; after it has
run, outputs and what they were made from are pushed. Nobody has to commit or merge `dvc.lock`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dvc.fs import LocalFileSystem, RemoteMissingDepsError
from dvc.repo import Repo
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from manymatch.system.errors import ConfigError, ManyMatchError
from pipelines import process
from pipelines.graph import RemoteFailed, is_made

SHARE = "MANYMATCH_SHARE"
RETRY_DELAYS: list[float] = [10, 20, 40]
"""Seconds until what failed, perhaps by the network, is tried again."""


class PushFailed(ManyMatchError):
    """Outputs that did not reach the remote."""


def shared(tell: Callable[[str], None]) -> bool:
    """Whether stages are shared; says so if their remote is a folder without anything in it.

    Raises:
        ConfigError: there is no remote to share them through.
    """
    chosen = os.environ.get(SHARE, "0")
    if chosen not in ("0", "1"):
        raise ConfigError(f"{SHARE}={chosen}: expected 1 or 0")
    if chosen == "1":
        _check_remote(tell)
    return chosen == "1"


def _check_remote(tell: Callable[[str], None]) -> None:
    with Repo(str(Path())) as repo:
        if not repo.config["core"].get("remote"):
            raise ConfigError(
                f"{SHARE}=1: DVC has no default remote; name one that every machine reaches, "
                "dvc remote add --default shared URL"
            )
        try:
            remote = repo.cloud.get_remote()
        except (ImportError, RemoteMissingDepsError) as error:
            raise ConfigError(
                f"{SHARE}=1: DVC's remote: {error}; pip install --constraint constraints.txt "
                "--editable '.[remotes]' has what SSH and S3 need"
            ) from None
        if isinstance(remote.fs, LocalFileSystem) and _is_empty(Path(remote.path)):
            tell(
                f"DVC's remote {remote.path} is empty: either nothing was pushed to it yet, or its "
                "disk is not mounted here; then cancel this run, which will compute what it lacks"
            )


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or not any(folder.iterdir())


def pull(name: str) -> None:
    """Put the outputs of the stage `name` in their places if a machine has pushed them, and the
    stage has to run; else do nothing."""
    try:
        is_made(Path(), name, pull=True)
    except RemoteFailed as error:
        raise RemoteFailed(
            f"{error}; {name} was not run, as another machine may have its outputs. Start the run "
            f"again once the remote can be reached, or without it: {SHARE}=0"
        ) from None


def push(name: str, tell: Callable[[str], None]) -> None:
    """Push the outputs of the stage `name`, and what it ran with, to the remote."""
    command = ["dvc", "--wait-for-lock", "push", "--run-cache", name]
    code, output = process.run_keeping(1, command, tell)
    if code:
        raise PushFailed(
            f"{name} is finished here, but could not be pushed: {' '.join(output)}; "
            "start the run again to push it"
        )


_network_task: Any = partial(
    task,
    cache_policy=NO_CACHE,
    retries=len(RETRY_DELAYS),
    retry_delay_seconds=RETRY_DELAYS,
)
"""What failed may be the network."""


@_network_task(name="pull", task_run_name="pull {name}")
def pull_stage(name: str) -> None:
    """`pull` as a task of its own."""
    pull(name)


@_network_task(name="push", task_run_name="push {name}")
def push_stage(name: str) -> None:
    """`push` as a task of its own."""
    push(name, get_run_logger().info)
