"""A process that must not outlive its parent, even if `kill -9` ends the parent."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import takewhile

import psutil

from manymatch.util.progress import say

GRACE = 5.0
"""Seconds between the interrupt and the kill of a process whose parent has ended."""
_SECONDS_BETWEEN_LOOKS = 1.0
_STAGE = "DVC_STAGE"
"""The environment variable that DVC sets for the processes of a stage."""


def call_when_parent_ends(
    action: Callable[[], object], parent: int | None = None, child: int | None = None
) -> threading.Event:
    """Call `action` in a thread as soon as the parent of this process has ended, unless the event
    that is returned is set before.

    Args:
        action: called once, within about a second of the parent's end.
        parent: process id of the parent; None takes the present parent. A process that starts
            slowly passes the id it was given, since its parent may have ended already.
        child: process id of the child of `parent` to watch; None takes this process.
    """
    stopped = threading.Event()
    watched = psutil.Process(child)
    arguments = action, watched, watched.ppid() if parent is None else parent, stopped
    threading.Thread(target=_watch, args=arguments, daemon=True).start()
    return stopped


def end_with_dvc() -> None:
    """Interrupt this process when the DVC that started it ends, and kill it if it does not end.

    Without this function a stage would go on after `kill -9` of `dvc repro` and keep the next
    `dvc repro` waiting. A process that DVC did not start is left alone.
    """
    if _STAGE not in os.environ:
        return
    processes = [psutil.Process(), *psutil.Process().parents()]
    # The outermost process of the stage is the child of DVC: this one, a shell or `torchrun`.
    *_, child = takewhile(lambda process: process == processes[0] or _is_stage(process), processes)
    call_when_parent_ends(_end, child.ppid(), child.pid)


def _is_stage(process: psutil.Process) -> bool:
    try:
        return process.environ().get(_STAGE) == os.environ[_STAGE]
    except psutil.Error:  # a process of another user
        return False


def _end() -> None:
    with contextlib.suppress(OSError):  # DVC's end may have closed the standard error
        say("DVC has ended, and so does this stage")
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # a shell's `dvc repro &` ignores it
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(GRACE)
    os._exit(1)


def _watch(
    action: Callable[[], object], child: psutil.Process, parent: int, stopped: threading.Event
) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        while child.ppid() == parent:
            if stopped.wait(_SECONDS_BETWEEN_LOOKS):
                return
    action()
