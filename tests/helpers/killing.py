"""Work in a child process that is killed (with -9) at a chosen moment."""

import importlib
import os
import signal
from typing import Any

from forked import forked


def kill_during(work, target, call):
    """Do `work` in a child process that dies at the `call`-th call of the function `target`; the
    test fails if it lives."""

    def killed():
        _kill_at(target, call)
        work()

    _, status = os.waitpid(forked(killed), 0)
    assert os.WIFSIGNALED(status), "the call at which to kill never came"
    assert os.WTERMSIG(status) == signal.SIGKILL


def _kill_at(target, call):
    path, name = target.rsplit(".", 1)
    owner: Any
    try:
        owner = importlib.import_module(path)
    except ModuleNotFoundError:
        module, kind = path.rsplit(".", 1)
        owner = getattr(importlib.import_module(module), kind)
    inner, calls = getattr(owner, name), []

    def counted(*args, **kwargs):
        calls.append(1)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*args, **kwargs)

    setattr(owner, name, counted)
