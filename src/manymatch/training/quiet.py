"""The surroundings of a training: no chatter, and the same numbers each time on the CPU."""

from __future__ import annotations

import contextlib
import logging
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import torch

_CHATTY = ("pytorch_lightning", "lightning_fabric", "lightning.pytorch", "lightning.fabric")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Lightning's tips, tables and advice off the screen; its errors stay errors."""
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
    """Let an interrupt be one: Lightning exits on it, and leaves the process deaf to the next."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit:
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


@contextlib.contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Choose algorithms that give the same bits each time, if `wanted` (on the CPU: on GPUs some
    operations have none). Without it, sums over repeated rows depend on the threads' order."""
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(wanted or before)
    settings.fill_uninitialized_memory = False  # it would only cost time
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
