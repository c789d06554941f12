"""Contexts of a training: no output of Lightning, interrupts, and deterministic numbers."""

from __future__ import annotations

import contextlib
import logging
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from manymatch.util.errors import DeviceMemoryError, memory_fault

_CHATTY = ("pytorch_lightning", "lightning_fabric", "lightning.pytorch", "lightning.fabric")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the tips, tables and advice that Lightning prints; errors are still shown."""
    loggers = [logging.getLogger(name) for name in _CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def keyboard_interrupts() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at an interrupt.

    Lightning would exit instead, and leave the process without a handler for the next interrupt.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit:
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


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
def deterministic(enabled: bool) -> Iterator[None]:
    """If `enabled`, use algorithms that give the same bits in every run.

    This serves the CPU; on GPUs some operations have no such algorithm. Without it, sums over
    repeated rows depend on the order of the threads.
    """
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(enabled or before)
    settings.fill_uninitialized_memory = False  # True costs time and changes no result
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
