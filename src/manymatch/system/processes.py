"""Worker processes that end with their parent; the death of a worker is an error of one line."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from manymatch.system.errors import ManyMatchError

_SECONDS_BETWEEN_CHECKS = 0.5


@contextlib.contextmanager
def process_pool(
    workers: int, what: str, setup: Callable[..., None] | None = None, arguments: Any = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes first call `setup(*arguments)`.

    If a process dies during the block (for example because memory is full), a `ManyMatchError`
    names the work as `what`.
    """
    # Processes are spawned: a fork of a process with threads (torch) can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _start, (setup, arguments))
    try:
        yield pool
    except BrokenProcessPool:
        raise ManyMatchError(
            f"{what}: a process ended before its work was done (out of memory?). "
            "Run the stage again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(setup: Callable[..., None] | None, arguments: Any) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        end_with_parent(parent.pid)
    if setup is not None:
        setup(*arguments)


def end_with_parent(parent: int) -> None:
    """End this process within a second of its `parent`, even if the parent is killed (`kill -9`).

    The caller passes the number of the parent, because the parent may already be gone now.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
