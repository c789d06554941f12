"""A run ends with its worker, because without the worker nobody could see or cancel the run."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from manymatch.system.parent import call_when_parent_ends
from pipelines.engine import STARTER

NEXT = (
    "Next: start a new worker with 'make serve', then start the same run again. An unfinished "
    "stage continues from its own checkpoints."
)


@contextlib.contextmanager
def ended_with_worker(tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, terminate this process if the worker that started it ends.

    Prefect turns the signal into the state Crashed. A process without a worker is left alone.
    """
    if STARTER not in os.environ:
        yield
        return

    def end() -> None:
        tell(f"the worker has ended, and so does the run. {NEXT}")
        os.kill(os.getpid(), signal.SIGTERM)

    # `pipelines/engine.py` is the parent of this process until it or its worker ends.
    watch = call_when_parent_ends(end, int(os.environ[STARTER]))
    try:
        yield
    finally:
        watch.set()
