"""Contexts of a training: no output of Lightning, faults of memory, and deterministic numbers."""

import contextlib
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import distributed

from manymatch.config.preset import Training
from manymatch.training.helpers import first_process
from manymatch.util.errors import ConfigError, DeviceMemoryError, memory_fault
from manymatch.util.parent import call_when_parent_ends
from manymatch.util.progress import say


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the tips and advice that Lightning prints; errors are still shown."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def memory_faults() -> Iterator[None]:
    """Raise a `DeviceMemoryError` if the memory of the processor or the GPU is not enough."""
    try:
        yield
    except (MemoryError, RuntimeError) as fault:
        what = memory_fault(fault)
        if not what:
            raise
        raise DeviceMemoryError(
            f"training: the memory is not enough ({what}). Lower training.images_per_batch, or "
            "set training.accumulate"
        ) from None


@contextlib.contextmanager
def deterministic(
    training: Training, device: torch.device, same_shapes: bool = False
) -> Iterator[None]:
    """On a CPU, or with `training.deterministic`, use algorithms that give the same bits in every
    run.

    Without them, sums over repeated rows depend on the order of the threads. On a GPU an operation
    that has no such algorithm stays as it is, and one line names the operation. On a CPU the
    operation is a `RuntimeError`.

    Args:
        same_shapes: whether all batches have the same shape: then cuDNN tries its algorithms in the
            first step and keeps the fastest, which may be another one in the next run.
    """
    gpu = device.type != "cpu"
    enabled = training.deterministic or not gpu
    if enabled and gpu:  # cuBLAS reads it before the first product
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill, benchmark = settings.fill_uninitialized_memory, torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(enabled or before, warn_only=gpu)
    settings.fill_uninitialized_memory = False  # True costs time and changes no result
    torch.backends.cudnn.benchmark = (same_shapes or benchmark) and not enabled
    show: Any = warnings.showwarning

    def say_or_show(message: Warning | str, *place: Any, **more: Any) -> None:
        if "deterministic" in str(message):
            _say_once(str(message).partition(". ")[0])
        else:
            show(message, *place, **more)

    try:
        with warnings.catch_warnings():
            if enabled and gpu:  # `quiet` hides warnings
                warnings.filterwarnings("always", ".*deterministic")
                warnings.showwarning = say_or_show
            yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
        torch.backends.cudnn.benchmark = benchmark


@cache
def _say_once(text: str) -> None:
    if first_process():
        say(f"training.deterministic: {text}")


TORCHRUN = "MANYMATCH_TORCHRUN"
"""The environment variable with the options of `torchrun`, such as `--standalone --nproc-per-node
4`, or on the first of two hosts `--nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr HOST
--master-port 29400`."""
_AGENT = "MANYMATCH_TORCHRUN_PID"
"""The environment variable with the process number of `torchrun`, for its processes: `torchrun` may
have ended before a process starts."""


def relaunch() -> None:
    """Replace this process by `torchrun OPTIONS -m manymatch ...` with the same command.

    Nothing happens in the processes of `torchrun`, or if the environment variable is not set.
    """
    text = os.environ.get(TORCHRUN, "")
    try:
        options = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{TORCHRUN}={text}: {error}") from None
    if options and not distributed.is_torchelastic_launched():
        os.environ[_AGENT] = str(os.getpid())  # exec keeps the process number
        torchrun = [sys.executable, "-m", "torch.distributed.run", *options]
        os.execv(sys.executable, [*torchrun, "-m", "manymatch", *sys.argv[1:]])


def end_with_torchrun() -> None:
    """End this process within seconds after the end of the `torchrun` that started it.

    The processes of `torchrun` are in sessions of their own: `kill -9` of the stage's process group
    ends `torchrun` but not its processes, which would write to the same files as the next run.
    """
    if distributed.is_torchelastic_launched():
        agent = int(os.environ.get(_AGENT, os.getppid()))
        call_when_parent_ends(partial(os._exit, 1), agent)
