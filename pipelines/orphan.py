"""A run whose worker is gone ends too, instead of going on where nobody sees or can cancel it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

from pipelines.engine import STARTER

NEXT = (
    "Next: 'make serve' for a new worker, then start the same run again; an unfinished stage goes "
    "on from its own checkpoints"
)
_SECONDS_BETWEEN_LOOKS = 1.0


@contextlib.contextmanager
def ended_with_worker(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, terminate this process if the worker that started it ends.

    Prefect turns the signal into the state Crashed. Does nothing where there is no worker.
    """
    if STARTER not in os.environ:
        yield
        return
    left = threading.Event()
    starter = int(os.environ[STARTER])
    threading.Thread(target=_watch, args=(starter, left, tell), daemon=True).start()
    try:
        yield
    finally:
        left.set()


def _watch(starter: int, left: threading.Event, tell: Callable[[str], None]) -> None:
    """`pipelines/engine.py` is the parent of this process until it or its worker ends."""
    while os.getppid() == starter:
        if left.wait(_SECONDS_BETWEEN_LOOKS):
            return
    tell(f"the worker has ended, and so does the run. {NEXT}")
    os.kill(os.getpid(), signal.SIGTERM)
