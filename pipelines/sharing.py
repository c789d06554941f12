"""Stages' outputs shared between machines through DVC's default remote.

`MANYMATCH_SHARE=1` in a worker's environment turns it on. Before a stage runs, DVC looks in the
remote whether it ran anywhere with the same inputs, and takes its outputs from there; after it has
run, outputs and what they were made from are pushed. Nobody has to commit or merge `dvc.lock`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dvc.repo import Repo
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from manymatch.errors import ConfigError, ManyMatchError
from pipelines import process

SHARE = "MANYMATCH_SHARE"
RETRY_DELAYS: list[float] = [10, 20, 40]
"""Seconds until what failed, perhaps by the network, is tried again."""


class PushFailed(ManyMatchError):
    """Outputs that did not reach the remote."""


def shared() -> bool:
    """Whether stages are shared; a `ConfigError` if there is no remote to share them through."""
    chosen = os.environ.get(SHARE, "0")
    if chosen not in ("0", "1"):
        raise ConfigError(f"{SHARE}={chosen}: expected 1 or 0")
    if chosen == "1":
        _check_remote()
    return chosen == "1"


def _check_remote() -> None:
    with Repo(str(Path())) as repo:
        if not repo.config["core"].get("remote"):
            raise ConfigError(
                f"{SHARE}=1: DVC has no default remote; name one that every machine reaches, "
                "dvc remote add --default shared URL"
            )


def push(name: str, tell: Callable[[str], None]) -> None:
    """Push the outputs of the stage `name`, and what it ran with, to the remote."""
    command = ["dvc", "--wait-for-lock", "push", "--run-cache", name]
    code, output = process.run_keeping(1, command, tell)
    if code:
        raise PushFailed(
            f"{name} is finished here, but could not be pushed: {' '.join(output)}; "
            "start the run again to push it"
        )


@task(
    name="push",
    task_run_name="push {name}",
    cache_policy=NO_CACHE,
    retries=len(RETRY_DELAYS),
    retry_delay_seconds=RETRY_DELAYS,
)
def push_stage(name: str) -> None:
    """`push` as a task of its own: what failed may be the network."""
    push(name, get_run_logger().info)
