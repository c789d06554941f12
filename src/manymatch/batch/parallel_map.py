"""Independent pieces of work on all cores, one core for each piece."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work(item)` for every item, without gradients, in as many threads as torch may use.

    A small operation that is divided among all cores must wait for the slowest core. Whole pieces
    of work do not wait, which is faster when other programs share the cores.
    """
    threads, pieces = torch.get_num_threads(), list(items)
    numbers, results = iter(range(len(pieces))), dict[int, Result]()

    def run() -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():  # inference mode is a property of the thread
            for number in numbers:
                results[number] = work(pieces[number])

    # The caller works, too: new and woken threads are late on a busy machine.
    others = [_pool(os.getpid()).submit(run) for _ in range(min(threads, len(pieces)) - 1)]
    try:
        run()
    finally:
        wait([other for other in others if not other.cancel()])
        torch.set_num_threads(threads)  # the workers changed the default of later threads
    for other in others:
        if not other.cancelled():
            other.result()
    return [results[number] for number in range(len(pieces))]


def start_background(work: Callable[[], Result]) -> Future[Result]:
    """Start `work` in the background thread of this process, which does one work at a time."""
    return _pool(os.getpid(), 1).submit(work)


@cache
def _pool(process: int, threads: int | None = None) -> ThreadPoolExecutor:
    """The threads of a process.

    Threads are kept, because starting a thread can take longer than a piece of work, and because a
    thread that ends holds a lock of MKL for a moment: if the process forks at that moment, the
    child waits for the lock forever.
    """
    return ThreadPoolExecutor(threads)


@contextlib.contextmanager
def single_core() -> Iterator[None]:
    """Run the operations of the block on one core. torch's threads keep their cores for a while
    after an operation, and would take the cores from work that runs in parallel."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
