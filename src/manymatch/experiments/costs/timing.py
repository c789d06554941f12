"""Wall-clock times, including the work that a GPU does asynchronously, and the hardware."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
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


_PROCESSORS = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> str:
    """The device that torch uses: "NVIDIA A100", or "Intel Xeon ..., 2 threads"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """The model of the processor, or its architecture if the system does not name the model."""
    text = _PROCESSORS.read_text() if _PROCESSORS.is_file() else ""
    models = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return next(models, "").strip() or platform.processor() or platform.machine()
