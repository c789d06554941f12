"""Work side by side: each item in a process with its share of the cores, or with one GPU."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any, TypeVar

import torch

from manymatch.networks.device import pick_device
from manymatch.util.errors import ManyMatchError
from manymatch.util.processes import process_pool
from manymatch.util.progress import say, working

Item = TypeVar("Item", bound=Any)
Outcome = TypeVar("Outcome")


def gpus_of(device: str) -> list[str]:
    """The GPUs that `device` allows, as `CUDA_VISIBLE_DEVICES` names them; empty: use the CPU. A
    device that this machine lacks is a `ConfigError`."""
    picked = pick_device(device)
    if picked.type == "cpu":
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    names = visible.split(",") if visible else [str(number) for number in range(count)]
    return names if picked.index is None else [names[picked.index]]


def finish_all(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    text: Callable[[Outcome], str | None],
    *,
    what: str,
    logs: Path,
    jobs: int | None,
    gpus: Sequence[str],
    one_a_core: bool = True,
    expected: Sequence[float | None] = (),
    log: Callable[[Item], Path] | None = None,
) -> list[tuple[Item, Outcome]]:
    """Each item with `work(item)`, and a line of progress for each. An item has a `label`.

    A small model gains little from a second core, so two runs on one core each are finished sooner
    than one run after the other on both cores.

    Args:
        text: says what the result is (None: nothing was done).
        what: what the work is called in messages.
        logs: the folder of the folders in which `work` writes `log.txt`.
        jobs: the number of processes. None: one for each GPU or, without GPUs, for each core.
        one_a_core: if false, a run without a GPU uses all cores.
        expected: the seconds of each item, if they are known from earlier ones.
        log: the file in which `work` writes its messages, of which the last one is shown.

    Raises:
        ManyMatchError: an item failed. All other items have been finished.
    """
    if not items:
        return []
    cores = (os.cpu_count() or 1) if one_a_core else 1
    workers = min(jobs or len(gpus) or cores, len(items))
    known = [seconds for seconds in expected if seconds]
    minutes = sum(known) / max(1, len(known)) * len(items) / workers / 60
    about = f", about {max(1, minutes):.0f} min by earlier runs" if known else ""
    say(
        f"{what}: {workers} at a time{about}; the messages of the runs are in "
        f"{logs / '*' / 'log.txt'}"
    )
    finished: list[tuple[Item, Outcome]] = []
    failed: list[str] = []
    started = time.monotonic()
    outcomes = side_by_side(work, items, workers, gpus, what, log)
    for done, (item, outcome) in enumerate(outcomes, start=1):
        if isinstance(outcome, ManyMatchError):
            failed.append(item.label)
            say(f"{item.label}: failed: {outcome}")
            continue
        finished.append((item, outcome))
        left = len(items) - done
        minutes = (time.monotonic() - started) / done * left / 60
        if shown := text(outcome):
            rest = f"{left} left, about {max(1, minutes):.0f} min" if left else "the last"
            say(f"{item.label}: {shown}; {rest}")
    if failed:
        raise ManyMatchError(
            f"{what}: {len(failed)} of {len(items)} runs failed ({'; '.join(failed)}). "
            "The other runs are kept: correct these and run the same command again"
        )
    return finished


def side_by_side(
    work: Callable[[Item], Outcome],
    items: Sequence[Item],
    workers: int,
    gpus: Sequence[str],
    what: str,
    log: Callable[[Item], Path] | None = None,
) -> Iterator[tuple[Item, Outcome | ManyMatchError]]:
    """Each item with `work(item)`, or with the user's error that ended the work, as soon as the
    item is done. Meanwhile a line says how many are done, and where the others are, if they have a
    `log`.

    Each process has its share of the threads, or one GPU. `work` and the items must be picklable.
    If a process dies, a `ManyMatchError` is raised that calls the work `what`.
    """
    threads = max(1, torch.get_num_threads() // workers)
    counter = multiprocessing.get_context("spawn").Value("i", 0)
    setup = _set_up, (threads, gpus, counter)
    waiting: dict[Future[Outcome | ManyMatchError], Item] = {}
    began = time.time()

    def state() -> str:
        left = [item for future, item in [*waiting.items()] if not future.done()]
        done = f"{len(waiting) - len(left)} done" if len(left) < len(waiting) else ""
        places = (_place(item, log(item), began) for item in left if log)
        return "; ".join(filter(None, [done, *places]))

    with process_pool(workers, what, *setup) as pool, working(f"{what}: {len(items)} runs", state):
        waiting |= {pool.submit(caught, work, item): item for item in items}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def _place(item: Item, log: Path, since: float) -> str:
    """Where an item is that began after `since`, in seconds since 1970; "" for another item."""
    try:
        begun = log.stat().st_mtime >= since
        said = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["begins"]
    except OSError:  # the item begins or ends in this moment
        return ""
    return f"{item.label}: {said[-1].partition(':')[0]}" if begun else ""


def _set_up(threads: int, gpus: Sequence[str], counter: Any) -> None:
    """Give this process its threads and, in turn, one of the GPUs."""
    torch.set_num_threads(threads)
    with counter.get_lock():
        number = counter.value
        counter.value += 1
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)] if gpus else ""


def caught(work: Callable[[Item], Outcome], item: Item) -> Outcome | ManyMatchError:
    """`work(item)`, or the user's error that ended the work."""
    try:
        return work(item)
    except ManyMatchError as fault:
        return fault
