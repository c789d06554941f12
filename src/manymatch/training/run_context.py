"""Contexts of a training: no output of Lightning, faults of memory, and deterministic numbers."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from manymatch.util.errors import DeviceMemoryError, memory_fault


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the tips and advice that Lightning prints; errors are still shown."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
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
def deterministic(enabled: bool, same_shapes: bool = False) -> Iterator[None]:
    """If `enabled`, use algorithms that give the same bits in every run.

    This serves the CPU; on GPUs some operations have no such algorithm. Without it, sums over
    repeated rows depend on the order of the threads.

    Args:
        enabled: whether to change anything.
        same_shapes: whether all batches have the same shape: then cuDNN tries its algorithms in the
            first step and keeps the fastest.
    """
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill, benchmark = settings.fill_uninitialized_memory, torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(enabled or before)
    settings.fill_uninitialized_memory = False  # True costs time and changes no result
    torch.backends.cudnn.benchmark = same_shapes or benchmark
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
        torch.backends.cudnn.benchmark = benchmark
