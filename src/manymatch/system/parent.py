"""A process that must not outlive its parent, even if `kill -9` ends the parent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_SECONDS_BETWEEN_LOOKS = 1.0


def call_when_parent_ends(
    action: Callable[[], object], parent: int | None = None
) -> threading.Event:
    """Call `action` in a thread as soon as the parent of this process has ended.

    Args:
        action: called once, within about a second of the parent's end.
        parent: process id of the parent; None takes the present parent. A process that starts
            slowly passes the id it was given, since its parent may have ended already.

    Returns:
        an event that ends the watch when it is set.
    """
    stopped = threading.Event()
    arguments = action, os.getppid() if parent is None else parent, stopped
    threading.Thread(target=_watch, args=arguments, daemon=True).start()
    return stopped


def _watch(action: Callable[[], object], parent: int, stopped: threading.Event) -> None:
    while os.getppid() == parent:
        if stopped.wait(_SECONDS_BETWEEN_LOOKS):
            return
    action()
