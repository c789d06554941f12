"""Wall-clock times, also of work that a GPU does behind the caller's back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, TypeVar

import torch

_Item = TypeVar("_Item")


def seconds(work: Callable[[], Any], device: torch.device) -> float:
    """How long `work` takes until `device` has done it."""
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def median_seconds(
    work: Callable[[_Item], Any], items: Iterable[_Item], device: torch.device, warm_up: int = 3
) -> float:
    """The median over `items` of the seconds that `work` takes, without the first `warm_up`,
    beyond which there must be some."""
    times = [seconds(lambda item=item: work(item), device) for item in items]  # type: ignore[misc]
    return median(times[warm_up:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
