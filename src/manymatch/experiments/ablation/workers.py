"""Runs side by side: each in a process with its share of the cores, or a GPU of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any, TypeVar

import torch

from manymatch.system.errors import ManyMatchError
from manymatch.system.processes import process_pool

Item = TypeVar("Item")
Result = TypeVar("Result")


def workers_for(asked: int | None, items: int) -> int:
    """How many processes to use: as asked, or one a GPU, or one a core where there is none.

    Small models gain little from a second core, so two runs on one core each are done sooner than
    one after the other on both.
    """
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return max(1, min(asked or devices or os.cpu_count() or 1, items))


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int, what: str
) -> Iterator[tuple[Item, Result | ManyMatchError]]:
    """`work(item)` of every item as soon as it is done, or the user's fault that ended it.

    `work` and items must be picklable. A process that dies is a `ManyMatchError` that names the
    work as `what`.
    """
    threads = max(1, (os.cpu_count() or 1) // workers)
    counter = multiprocessing.get_context("spawn").Value("i", 0)
    with process_pool(workers, what, _set_up, (threads, _gpus(), counter)) as pool:
        waiting = {pool.submit(caught, work, item): item for item in items}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _gpus() -> list[str]:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named and count else [str(number) for number in range(count)]


def _set_up(threads: int, gpus: list[str], counter: Any) -> None:
    """Give this process its threads and its GPU, in turn."""
    torch.set_num_threads(threads)
    with counter.get_lock():
        number = counter.value
        counter.value += 1
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)]


def caught(work: Callable[[Item], Result], item: Item) -> Result | ManyMatchError:
    """`work(item)`, or the user's fault that ended it."""
    try:
        return work(item)
    except ManyMatchError as fault:
        return fault
