"""Independent pieces of work on all cores, one core for each piece."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work(item)` for every item, without gradients, in as many threads as torch may use.

    A small operation that is divided among all cores must wait for the slowest core. Whole pieces
    of work do not wait, which is faster when other programs share the cores.
    """
    threads, pieces = torch.get_num_threads(), list(items)

    def quietly(item: Item) -> Result:
        with torch.inference_mode():  # inference mode is a property of the thread
            return work(item)

    if threads == 1 or len(pieces) < 2:  # a new thread takes longer than many a small piece
        with on_one_core():
            return list(map(quietly, pieces))
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(quietly, pieces))
    finally:
        torch.set_num_threads(threads)  # the workers changed the default of later threads


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Run the operations of the block on one core.

    torch's threads keep their cores for a while after an operation, and would take the cores from
    work that runs in parallel.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
