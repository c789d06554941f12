"""The GPUs of a run: as many as its queue says, and no GPU is shared with another run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TextIO

from manymatch.system.errors import ConfigError

WANTED = "MANYMATCH_GPUS"
"""The environment variable with the number of GPUs that a run takes; `prefect.yaml` sets it."""
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


@contextlib.contextmanager
def claimed(tell: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The environment in which a run sees only its own GPUs; after the block the GPUs are free.

    Waits until enough GPUs are free. A run that wants 0 GPUs sees none. Without a GPU, or without
    the variable `MANYMATCH_GPUS`, the environment is empty.
    """
    ids, wanted = present(), _wanted()
    if wanted is None or not ids:
        yield {}
        return
    with _taken(ids, min(wanted, len(ids)), tell) as taken:
        if taken:
            tell(f"computing on GPU {', '.join(taken)}")
        yield {_VISIBLE: ",".join(taken)}


def _wanted() -> int | None:
    text = os.environ.get(WANTED)
    if text is None:
        return None
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
    with _lock_file("taking") as turn:  # else each of two runs could take a GPU the other needs
        fcntl.flock(turn, fcntl.LOCK_EX)
        for name in ids:
            if len(taken) < count and _lock(name, held):
                taken.append(name)
    return taken


def _lock(name: str, held: contextlib.ExitStack) -> bool:
    file = _lock_file(f"gpu-{name}")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    held.enter_context(file)
    return True


def _lock_file(name: str) -> TextIO:
    """A lock file for all runs of this user on this machine, in every checkout."""
    folder = Path(tempfile.gettempdir(), f"manymatch-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return (folder / f"{name}.lock").open("a")
