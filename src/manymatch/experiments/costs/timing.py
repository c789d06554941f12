"""Wall-clock times, including the work that a GPU does asynchronously."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, TypeVar

import torch

_Item = TypeVar("_Item")


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """The seconds until `device` has finished `work`."""
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def median_seconds(
    work: Callable[[_Item], Any], items: Iterable[_Item], device: torch.device, warm_up: int = 3
) -> float:
    """The median over `items` of the seconds that `work` takes. The first `warm_up` items are left
    out; there must be more items than that."""
    times = [seconds(lambda item=item: work(item), device) for item in items]  # type: ignore[misc]
    return median(times[warm_up:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
