"""Work in a child process that is killed (with -9) at a chosen moment."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from typing import Any

from forked import forked


def kill_during(work: Callable[[], Any], target: str, call: int) -> None:
    """Do `work` in a child process that dies at the `call`-th call of the function `target`; the
    test fails if it lives."""

    def killed() -> None:
        _kill_at(target, call)
        work()

    _, status = os.waitpid(forked(killed), 0)
    assert os.WIFSIGNALED(status), "the call at which to kill never came"
    assert os.WTERMSIG(status) == signal.SIGKILL


def _kill_at(target: str, call: int) -> None:
    path, name = target.rsplit(".", 1)
    owner: Any
    try:
        owner = importlib.import_module(path)
    except ModuleNotFoundError:
        module, kind = path.rsplit(".", 1)
        owner = getattr(importlib.import_module(module), kind)
    inner, calls = getattr(owner, name), []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*args, **kwargs)

    setattr(owner, name, counted)
