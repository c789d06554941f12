"""Worker processes that end with their parent; a worker that dies is a one-line error."""

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from manymatch.util.errors import ManyMatchError
from manymatch.util.parent import call_when_parent_ends


@contextlib.contextmanager
def process_pool(
    workers: int, what: str, setup: Callable[..., None] | None = None, arguments: Any = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes first call `setup(*arguments)`.

    A process that dies during the block (out of memory, for example) is a `ManyMatchError` that
    calls the work `what`.
    """
    # Processes are spawned, because a fork of a process with threads (torch) can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _start, (os.getpid(), setup, arguments))
    try:
        yield pool
    except BrokenProcessPool:
        raise ManyMatchError(
            f"{what}: a process ended before its work was done (out of memory?); "
            "run the stage again"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start(parent: int, setup: Callable[..., None] | None, arguments: Any) -> None:
    call_when_parent_ends(partial(os._exit, 1), parent)
    if setup is not None:
        setup(*arguments)
