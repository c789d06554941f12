"""The GPUs of a run: none in the queue `cpu`, else one or as many as the worker's environment says.
No GPU is shared with another run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

from filelock import FileLock, Timeout
from prefect.context import FlowRunContext

from manymatch.util.errors import ConfigError

QUEUE, WITHOUT = "gpu", "cpu"
"""The queue of the runs on GPUs, and of the runs that see none."""
WANTED = "MANYMATCH_GPUS"
"""The environment variable of a worker with the number of GPUs that a run takes; else 1."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def present() -> list[str]:
    """The ids of this machine's GPUs; `CUDA_VISIBLE_DEVICES` may hide some."""
    if (visible := os.environ.get(_VISIBLE)) is not None:
        names = (name.strip() for name in visible.split(","))
        return list(takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True)
    return answer.stdout.split() if answer.returncode == 0 else []


def queue_of_run() -> str | None:
    """The queue from which a worker took the present run."""
    context = FlowRunContext.get()
    return context.flow_run.work_queue_name if context and context.flow_run else None


@contextlib.contextmanager
def claimed(queue: str | None, tell: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The environment in which a run sees only its own GPUs; after the block the GPUs are free.

    Waits until enough GPUs are free. A run that wants 0 GPUs sees none. On a machine without a GPU,
    and for a run without a queue, the environment is empty.

    Args:
        queue: the queue of the run; None: no worker started the run.
        tell: receives each message.
    """
    ids, wanted = present(), _wanted(queue)
    if wanted is None or not ids:
        yield {}
        return
    with _taken(ids, min(wanted, len(ids)), tell) as taken:
        if taken:
            tell(f"computing on GPU {', '.join(taken)}")
        yield {_VISIBLE: ",".join(taken)}


def _wanted(queue: str | None) -> int | None:
    if queue in (None, WITHOUT):
        return None if queue is None else 0
    text = os.environ.get(WANTED, "1")
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{WANTED}={text}: expected a number of GPUs, such as 1")
    return int(text)


@contextlib.contextmanager
def _taken(ids: list[str], count: int, tell: Callable[[str], None]) -> Iterator[list[str]]:
    """Wait for `count` GPUs and claim them together: runs that kept some GPUs while they wait for
    more could wait for each other."""
    waiting = False
    while True:
        with contextlib.ExitStack() as held:
            if len(taken := _take(ids, count, held)) == count:
                yield taken
                return
        if not waiting:
            tell(f"waiting for {count} of the GPUs {', '.join(ids)}")
            waiting = True
        time.sleep(1)


def _take(ids: list[str], count: int, held: contextlib.ExitStack) -> list[str]:
    """Up to `count` free GPUs, claimed until `held` is closed."""
    taken: list[str] = []
    with _lock_file("taking"):  # else each of two runs could take a GPU the other needs
        for name in ids:
            if len(taken) < count and _lock(name, held):
                taken.append(name)
    return taken


def _lock(name: str, held: contextlib.ExitStack) -> bool:
    try:
        held.enter_context(_lock_file(f"gpu-{name}").acquire(blocking=False))
    except Timeout:
        return False
    return True


def _lock_file(name: str) -> FileLock:
    """A lock file for all runs of this user on this machine, in every checkout."""
    folder = Path(tempfile.gettempdir(), f"manymatch-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return FileLock(folder / f"{name}.lock")
