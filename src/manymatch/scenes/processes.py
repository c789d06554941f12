"""`map` over all processors, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from manymatch.system.processes import process_pool

Job = TypeVar("Job")
Result = TypeVar("Result")


def mapped(
    function: Callable[[Job], Result], jobs: Iterable[Job], parallel: bool
) -> Iterator[Result]:
    """The results in the order of `jobs`, computed by as many processes as there are processors if
    `parallel`."""
    if not parallel:
        yield from map(function, jobs)
        return
    with process_pool(os.cpu_count() or 1, "scenes") as pool:
        yield from pool.map(function, jobs)
