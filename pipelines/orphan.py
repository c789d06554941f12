"""A run whose worker is gone ends too, instead of going on where nobody sees or can cancel it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

_SECONDS_BETWEEN_LOOKS = 1.0
_STARTED_BY_WORKER = "PREFECT__FLOW_RUN_ID"


@contextlib.contextmanager
def ended_with_worker(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, terminate this process if the worker that started it ends.

    Prefect turns the signal into the state Crashed. Does nothing where there is no worker.
    """
    if _STARTED_BY_WORKER not in os.environ:
        yield
        return
    left = threading.Event()
    threading.Thread(target=_watch, args=(os.getppid(), left, tell), daemon=True).start()
    try:
        yield
    finally:
        left.set()


def _watch(worker: int, left: threading.Event, tell: Callable[[str], None]) -> None:
    while os.getppid() == worker:
        if left.wait(_SECONDS_BETWEEN_LOOKS):
            return
    tell(
        "the worker has ended, and so does the run. Next: 'make serve' for a new worker, then "
        "start the same run again; an unfinished stage goes on from its own checkpoints"
    )
    os.kill(os.getpid(), signal.SIGTERM)
