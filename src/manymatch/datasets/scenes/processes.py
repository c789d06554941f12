"""`map` over all processors, in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from manymatch.errors import ManyMatchError

Job = TypeVar("Job")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Job], Result], jobs: Iterable[Job], parallel: bool
) -> Iterator[Result]:
    """The results in the order of `jobs`, computed by as many processes as there are processors if
    `parallel`. A process that dies (out of memory) is a `ManyMatchError`."""
    if not parallel:
        yield from map(function, jobs)
        return
    # Processes start afresh: a fork of a process with threads (torch) can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(os.cpu_count(), context, _watch_parent)
    try:
        yield from pool.map(function, jobs)
    except BrokenProcessPool:
        raise ManyMatchError(
            "scenes: a process ended before its work was done (out of memory?); run the stage again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _watch_parent() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, even by kill -9."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
