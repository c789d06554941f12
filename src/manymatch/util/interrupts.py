"""Interrupts: SIGTERM counts as Control-C, and the first process interrupts its child processes."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """In the block, SIGTERM is an interrupt, as Control-C is, so that temporary files are removed.

    Nothing happens outside of the main thread, where SIGTERM is ignored, and under `torchrun`,
    which ends its processes by SIGTERM while they wait for each other."""
    here = threading.current_thread() is threading.main_thread()
    ignored = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    if not here or ignored or "TORCHELASTIC_RUN_ID" in os.environ:
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Processes that start in the block do not get the interrupt of the keyboard, which reaches all
    processes of a terminal: the first process ends the others."""
    # The tracker of multiprocessing starts before, because its start would unblock the signal.
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
