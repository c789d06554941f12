"""Which GPUs a run computes on: as many as its queue says, none of them shared with another run."""

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
"""The environment variable that says how many GPUs a run takes; `prefect.yaml` sets it."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def present() -> list[str]:
    """The ids of this machine's GPUs, or of those that `CUDA_VISIBLE_DEVICES` leaves."""
    if (visible := os.environ.get(_VISIBLE)) is not None:
        names = (name.strip() for name in visible.split(","))
        return list(takewhile(lambda name: name not in ("", "-1"), names))  # as CUDA reads it
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.split() if found.returncode == 0 else []


@contextlib.contextmanager
def claimed(tell: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The environment in which a run sees its own GPUs only; they are free again afterwards.

    Waits until enough are free. A run that wants 0 sees none. Where there is no GPU, or nothing is
    said of how many are wanted, the environment is empty.
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
        raise ConfigError(f"{WANTED}={text}: expected how many GPUs a run takes, such as 1")
    return int(text)


@contextlib.contextmanager
def _taken(ids: list[str], count: int, tell: Callable[[str], None]) -> Iterator[list[str]]:
    """Wait for `count` of the GPUs and take them at once: runs that kept some while they wait for
    more could wait for each other."""
    told = False
    while True:
        with contextlib.ExitStack() as held:
            if len(taken := _take(ids, count, held)) == count:
                yield taken
                return
        if not told:
            tell(f"waiting for {count} of the GPUs {', '.join(ids)}")
            told = True
        time.sleep(1)


def _take(ids: list[str], count: int, held: contextlib.ExitStack) -> list[str]:
    """Up to `count` free GPUs, claimed until `held` is closed."""
    taken: list[str] = []
    with _lock_file("taking") as turn:  # else two runs could each take what the other lacks
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
    """What all runs of this user on this machine lock, in whatever checkout."""
    folder = Path(tempfile.gettempdir(), f"manymatch-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return (folder / f"{name}.lock").open("a")
