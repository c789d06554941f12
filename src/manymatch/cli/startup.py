"""A command that has printed nothing for ten seconds says that it is still loading."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from manymatch.system.progress import working


class _Watched:
    """A stream that calls `before_write` before the main thread writes."""

    def __init__(self, stream: TextIO, before_write: Callable[[], None]) -> None:
        self._stream, self._before_write = stream, before_write

    def write(self, text: str) -> int:
        if threading.current_thread() is threading.main_thread():
            self._before_write()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def loading(command: str) -> Iterator[None]:
    """Say after ten seconds, then at most every minute, that `command` loads its libraries and
    inputs, until the command itself prints something on standard error."""
    stream = sys.stderr
    with contextlib.ExitStack() as stack:
        stack.enter_context(working(f"{command}: loading libraries and inputs"))
        sys.stderr = _Watched(stream, stack.close)
        try:
            yield
        finally:
            sys.stderr = stream
