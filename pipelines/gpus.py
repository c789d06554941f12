"""The GPUs of a run: none in the queue `cpu`, else one or as many as the worker's environment says.
No GPU is shared with another run."""

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

from manymatch.util.errors import ConfigError

QUEUE, WITHOUT = "gpu", "cpu"
"""The queue of the runs on GPUs, and of the runs that see none."""
WANTED = "MANYMATCH_GPUS"
"""The environment variable of a worker with the number of GPUs that a run takes; else 1."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SECONDS_BETWEEN_LOOKS = 1.0


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
def claimed(queue: str | None, tell: Callable[[str], None]) -> Iterator[dict[str, str]]:
    """The environment in which a run sees only its own GPUs; after the block the GPUs are free.

    Waits until enough GPUs are free, and claims them together: runs that kept some GPUs while they
    wait for more could wait for each other. A run that wants 0 GPUs sees none. On a machine without
    a GPU, and for a run without a queue, the environment is empty.

    Args:
        queue: the queue of the run; None: no worker started the run.
        tell: receives each message.
    """
    text = "0" if queue == WITHOUT else os.environ.get(WANTED, "1")
    if queue and not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{WANTED}={text}: expected a number of GPUs, such as 1")
    ids = present() if queue else []
    if not ids:
        yield {}
        return
    count, waiting = min(int(text), len(ids)), False
    # All runs of this user on this machine, in every checkout, see these lock files.
    folder = Path(tempfile.gettempdir(), f"manymatch-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    while True:
        with contextlib.ExitStack() as held:
            taken: list[str] = []
            with FileLock(folder / "taking.lock"):  # else two runs could each take half
                for name in ids:
                    with contextlib.suppress(Timeout):
                        if len(taken) < count:
                            held.enter_context(
                                FileLock(folder / f"gpu-{name}.lock", blocking=False)
                            )
                            taken.append(name)
            if len(taken) == count:
                if taken:
                    tell(f"computing on GPU {', '.join(taken)}")
                yield {_VISIBLE: ",".join(taken)}
                return
        if not waiting:
            tell(f"waiting for {count} of the GPUs {', '.join(ids)}")
            waiting = True
        time.sleep(_SECONDS_BETWEEN_LOOKS)
