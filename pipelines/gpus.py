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
from pathlib import Path

WANTED = "MANYMATCH_GPUS"
"""The environment variable that says how many GPUs a run takes; `prefect.yaml` sets it."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def present() -> list[str]:
    """The ids of this machine's GPUs, or of those that `CUDA_VISIBLE_DEVICES` leaves."""
    if (visible := os.environ.get(_VISIBLE)) is not None:
        return [name for name in visible.split(",") if name]
    if not shutil.which("nvidia-smi"):
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.stdout.split() if found.returncode == 0 else []


@contextlib.contextmanager
def claimed(tell: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The environment in which a run sees its own GPUs only; they are free again afterwards.

    Waits until enough are free. Where there is no GPU, or none is wanted, the environment is empty.
    """
    ids, wanted = present(), int(os.environ.get(WANTED, "0"))
    with contextlib.ExitStack() as held:
        if not (count := min(wanted, len(ids))):
            yield {}
            return
        taken = _take(ids, count, held, tell)
        tell(f"computing on GPU {', '.join(taken)}")
        yield {_VISIBLE: ",".join(taken)}


def _take(
    ids: list[str], count: int, held: contextlib.ExitStack, tell: Callable[[str], None]
) -> list[str]:
    taken: list[str] = []
    told = False
    while True:
        for name in ids:
            if len(taken) < count and name not in taken and _lock(name, held):
                taken.append(name)
        if len(taken) == count:
            return taken
        if not told:
            tell(f"waiting for {count} of the GPUs {', '.join(ids)}")
            told = True
        time.sleep(1)


def _lock(name: str, held: contextlib.ExitStack) -> bool:
    """Claim one GPU against all runs of this user on this machine, in whatever checkout."""
    folder = Path(tempfile.gettempdir(), f"manymatch-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    file = (folder / f"gpu-{name}.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    held.enter_context(file)
    return True
