"""Runs side by side: each in a process with its share of the cores, or with one GPU."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any, TypeVar

import torch

from manymatch.system.device import pick_device
from manymatch.system.errors import ManyMatchError
from manymatch.system.processes import process_pool
from manymatch.system.progress import working

Item = TypeVar("Item")
Result = TypeVar("Result")


def gpus_of(device: str) -> list[str]:
    """The GPUs that `device` allows, as `CUDA_VISIBLE_DEVICES` names them; empty: use the CPU.

    Raises:
        ConfigError: this machine has no such device.
    """
    picked = pick_device(device)
    if picked.type == "cpu":
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    names = visible.split(",") if visible else [str(number) for number in range(count)]
    return names if picked.index is None else [names[picked.index]]


def workers_for(asked: int | None, items: int, gpus: Sequence[str], one_a_core: bool) -> int:
    """How many processes to use: as many as `asked`, one for each GPU, or one for each core.

    A small model gains little from a second core, so two runs on one core each are finished sooner
    than one run after the other on both cores. If `one_a_core` is false, a run without a GPU uses
    all cores.
    """
    cores = (os.cpu_count() or 1) if one_a_core else 1
    return max(1, min(asked or len(gpus) or cores, items))


def side_by_side(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    workers: int,
    gpus: Sequence[str],
    what: str,
) -> Iterator[tuple[Item, Result | ManyMatchError]]:
    """Each item with `work(item)`, or with the user's error that ended the work, as soon as the
    item is done.

    `work` and the items must be picklable. If a process dies, a `ManyMatchError` is raised that
    calls the work `what`.
    """
    threads = max(1, torch.get_num_threads() // workers)
    counter = multiprocessing.get_context("spawn").Value("i", 0)
    setup = _set_up, (threads, gpus, counter)
    with process_pool(workers, what, *setup) as pool, working(f"{what}: {len(items)} runs"):
        waiting = {pool.submit(caught, work, item): item for item in items}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _set_up(threads: int, gpus: Sequence[str], counter: Any) -> None:
    """Give this process its threads and, in turn, one of the GPUs."""
    torch.set_num_threads(threads)
    with counter.get_lock():
        number = counter.value
        counter.value += 1
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)] if gpus else ""


def caught(work: Callable[[Item], Result], item: Item) -> Result | ManyMatchError:
    """`work(item)`, or the user's error that ended the work."""
    try:
        return work(item)
    except ManyMatchError as fault:
        return fault
