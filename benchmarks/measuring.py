"""What several benchmarks measure: seconds, memory, and speed without the cache of the disk."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path


def clocks(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of `run` on the wall clock, and of the processor (all threads)."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


def peak_gib() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_turns(names: Iterable[str], rounds: int) -> Iterator[str]:
    """Yield the names of two candidates in every round. They begin the rounds in turn."""
    for turn in range(rounds):
        yield from sorted(names, reverse=bool(turn % 2))


def drop_from_cache(path: Path) -> None:
    """The next read of the file reads the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
