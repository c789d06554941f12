"""The harness of all benchmarks: options, work in turns with ratios of times, memory, the disk.

Machines differ and are busy, so a benchmark compares: each candidate does the same work in turns,
in one process, and the ratio is the median over the rounds.
"""

import argparse
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple


def arguments(doc: str, positional: Mapping[str, Any] | None = None, **flags: Any) -> Any:
    """The options of a benchmark.

    Args:
        doc: the text of the script; its first line describes the script.
        positional: the arguments without a flag; a list: any number of words, with this default.
        flags: the default of each option, or the default and a help text. False: a switch; a list:
            several values; None: a path.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in (positional or {}).items():
        words: dict[str, Any] = {"nargs": "*", "default": default, "metavar": name.upper()}
        parser.add_argument(name, **(words if isinstance(default, list) else {"type": Path}))
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


class Times(NamedTuple):
    """Seconds on the wall clock, and of the processor (all threads)."""

    wall: float
    processor: float


def clocks(run: Callable[[], object]) -> Times:
    """The times of `run`, or those that `run` returns because another process measured them."""
    wall, processor = time.perf_counter(), time.process_time()
    result = run()
    if isinstance(result, Times):
        return result
    return Times(time.perf_counter() - wall, time.process_time() - processor)


def alternate(names: Iterable[str], rounds: int) -> Iterator[str]:
    """Yield all names in every round. The candidates begin the rounds in turn."""
    order = list(names)
    for _ in range(rounds):
        yield from order
        order.append(order.pop(0))


def compare(
    title: str,
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    bases: Sequence[str] = (),
    warm_up: int = 1,
    before: Callable[[], object] = lambda: None,
) -> dict[str, list[Times]]:
    """Run all candidates in turns, print their times and ratios, and return the times.

    Args:
        bases: the candidates that the others are compared with; empty: the first candidate.
        warm_up: rounds that do not count.
        before: called before each work, outside of the times.
    """
    times: dict[str, list[Times]] = {name: [] for name in candidates}
    for name in alternate(candidates, warm_up + rounds):
        before()
        times[name].append(clocks(candidates[name]))
    times = {name: measured[warm_up:] for name, measured in times.items()}
    print(title)
    for name, measured in times.items():
        line = f"  {name:28}"
        for clock, label in enumerate(("wall", "processor")):
            line += f"{label:>10} {1000 * median(one[clock] for one in measured):9.1f} ms"
            for base in bases or list(candidates)[:1]:
                ratio = ratio_of(measured, times[base], clock)
                line += "" if base == name else f" = {ratio:.2f} x {base}"
        print(line, flush=True)
    return times


def ratio_of(times: Sequence[Times], base: Sequence[Times], clock: int) -> float:
    """The median over the rounds of the ratio of two candidates. `clock`: 0 is the wall's."""
    return median(one[clock] / other[clock] for one, other in zip(times, base, strict=True))


def peak_gib() -> float:
    """The most memory that this process has held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def drop_from_cache(path: Path) -> None:
    """The next read of the file reads the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
