"""Wall-clock times of any work and of a training step by itself, including the work that a GPU does
asynchronously; the hardware."""

from __future__ import annotations

import copy
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.config.preset import Training
from manymatch.methods.shared.method import Method
from manymatch.networks.device import tf32
from manymatch.training.machine import training_precision
from manymatch.training.optimizer import make_optimizer
from manymatch.training.run_context import deterministic

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


def step_seconds(
    method: Method, training: Training, batches: Sequence[Batch], device: torch.device
) -> float:
    """The median over `batches`, which are on `device` already; the first two are left out.

    `method` is not changed. The choice of algorithms is that of training.
    """
    step = training_step(copy.deepcopy(method), training, device)
    with deterministic(device.type == "cpu"):
        return median_seconds(step, batches, device, warm_up=2)


def training_step(
    method: Method, training: Training, device: torch.device
) -> Callable[[Batch], Tensor]:
    """`step(batch)` trains `method` as in a late epoch: all parameters, all losses at full weight.
    It returns the loss.

    The precision is the preset's, except for 16-bit floats, whose gradients would need scaling.
    """
    method.train()
    method.start_epoch(training.epochs)
    method.start_step(training.epochs)
    optimizer = make_optimizer(method, training, fused=True)
    mixed = training_precision(device.type, training.precision) == "bf16-mixed"

    @tf32(mixed)
    def step(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            images, texts = method.encode_images(batch), method.encode_texts(batch)
        terms = method.loss(images.float(), texts.float(), batch)
        optimizer.zero_grad()
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        if training.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(method.parameters(), training.clip_norm)
        optimizer.step()
        return loss.detach()

    return step
