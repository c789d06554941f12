"""What benchmarks share: options, seconds, memory, and speed without the cache of the disk."""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any


def arguments(doc: str, **flags: Any) -> argparse.Namespace:
    """The options of a benchmark.

    Args:
        doc: the text of the script; its first line describes the script.
        flags: the default of each option, or the default and a help text. False: a switch; a list:
            several values; None: a path.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, stated in flags.items():
        default, meaning = stated if isinstance(stated, tuple) else (stated, None)
        first = default[0] if isinstance(default, list) else default
        kind: dict[str, Any] = {"type": Path if first is None else type(first), "default": default}
        if isinstance(default, list):
            kind["nargs"] = "+"
        if default is False:
            kind = {"action": "store_true"}
        parser.add_argument(f"--{name.replace('_', '-')}", help=meaning, **kind)
    return parser.parse_args()


def clocks(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of `run` on the wall clock, and of the processor (all threads)."""
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


def peak_gib() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def alternate(names: Iterable[str], rounds: int) -> Iterator[str]:
    """Yield the names of two candidates in every round. They begin the rounds in turn."""
    for turn in range(rounds):
        yield from sorted(names, reverse=bool(turn % 2))


def drop_from_cache(path: Path) -> None:
    """The next read of the file reads the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
