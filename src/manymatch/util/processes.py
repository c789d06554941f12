"""Worker processes that end with their parent; a worker that dies is a one-line error."""

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from manymatch.util.errors import ManyMatchError
from manymatch.util.interrupts import deaf_children
from manymatch.util.parent import call_when_parent_ends

_works = False
"""Whether this worker process works now."""


class _Pool(ProcessPoolExecutor):
    """A pool whose workers can be ended in the middle of their work."""

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        with deaf_children():
            return super().submit(_worked, function, *given, **named)

    def end(self) -> None:
        """Interrupt the work, and end all workers. Python's own shutdown waits for the work, and
        for more work, which a worker takes from the queue after an interrupt."""
        for process in [*(self._processes or {}).values()]:
            process.terminate()


@contextlib.contextmanager
def process_pool(
    workers: int, what: str, setup: Callable[..., None] | None = None, arguments: Any = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes first call `setup(*arguments)`.

    An interrupt or error in the block interrupts the work of all processes. A process that dies
    during the block (out of memory, for example) is a `ManyMatchError` that calls the work `what`.
    """
    # Processes are spawned, because a fork of a process with threads (torch) can hang.
    context = multiprocessing.get_context("spawn")
    pool = _Pool(workers, context, _start, (os.getpid(), setup, arguments))
    try:
        yield pool
    except BrokenProcessPool:
        raise ManyMatchError(
            f"{what}: a process ended before its work was done (out of memory?); "
            "run the stage again"
        ) from None
    except BaseException:
        pool.end()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(parent: int, setup: Callable[..., None] | None, arguments: Any) -> None:
    signal.signal(signal.SIGTERM, _interrupt)
    call_when_parent_ends(partial(os._exit, 1), parent)
    if setup is not None:
        setup(*arguments)


def _interrupt(*_: object) -> None:
    if _works:
        raise KeyboardInterrupt
    os._exit(1)


def _worked(function: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the function returns, in a worker process. An interrupt ends the process."""
    global _works
    try:
        _works = True
        return function(*given, **named)
    except KeyboardInterrupt:
        os._exit(1)
    finally:
        _works = False
