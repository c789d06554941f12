"""Independent pieces of work on all cores, each piece on one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work(item)` for every item without gradient, in as many threads as torch may use.

    Many small operations each split over all cores wait for the slowest core after every one of
    them; whole pieces of work do not, which counts when other programs share the cores.
    """
    threads = torch.get_num_threads()

    def quietly(item: Item) -> Result:
        with torch.inference_mode():  # a property of the thread, as the number of threads is
            return work(item)

    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(quietly, items))
    finally:
        torch.set_num_threads(threads)  # the workers changed what later threads start with


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Run the block's operations on one core: threads that wait for more of them, as torch's do
    for a while, would take the cores from work that is done side by side."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
