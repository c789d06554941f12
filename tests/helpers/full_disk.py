"""A disk that is full: files of a child process may not grow beyond so many bytes."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

import torch


def error_on_full_disk(work: Callable[[], Any], room: int) -> str:
    """The name and text of what `work` raises in a child whose files end after `room` bytes."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            torch.set_num_threads(1)  # the parent's threads are not there
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            work()
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        return stream.read().decode()
