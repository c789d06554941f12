"""Work in a forked child process, which ends before the test is given up."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch

_PATIENCE = 300
"""Seconds after which a child is ended: a fork of a process with threads can hang."""


def forked(work: Callable[[], Any]) -> int:
    """The id of a child process that does `work` on one core and exits with 0, or with 1 after an
    error."""
    child = os.fork()
    if not child:
        code = 1
        try:
            # At the alarm the child prints where it is, and dies. A test may have replaced stderr.
            faulthandler.register(signal.SIGALRM, sys.__stderr__, chain=True)
            signal.alarm(_PATIENCE)
            torch.set_num_threads(1)  # the parent's threads are not there
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child
