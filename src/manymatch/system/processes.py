"""Worker processes that end with the one that started them, and say so in one line if they die."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from manymatch.system.errors import ManyMatchError


@contextlib.contextmanager
def process_pool(
    workers: int, what: str, setup: Callable[..., None] | None = None, arguments: Any = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes first call `setup(*arguments)`.

    A process that dies under the block's work (out of memory, say) is a `ManyMatchError` that
    names the work as `what`.
    """
    # Processes start afresh: a fork of a process with threads (torch) can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _start, (setup, arguments))
    try:
        yield pool
    except BrokenProcessPool:
        raise ManyMatchError(
            f"{what}: a process ended before its work was done (out of memory?); "
            "run the stage again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(setup: Callable[..., None] | None, arguments: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if setup is not None:
        setup(*arguments)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even by kill -9."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
