"""Commands in process groups of their own; their output is passed on line by line."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipelines import guard

SECONDS_BETWEEN_UPDATES = 5.0
"""Least time between two lines of a progress bar that redraws itself."""
_SECONDS_BETWEEN_LOOKS = 1.0
_END = re.compile(rb"\r?\n|\r(?!\Z)")
# A carriage return at the end of a piece may be half of a Windows line end.

_BIN = Path(sys.executable).parent
OWN = {"PATH": f"{_BIN}{os.pathsep}{os.environ.get('PATH', '')}", "PYTHONUNBUFFERED": "1"}
"""Environment in which stages find this process's own `manymatch` and `python` first."""


def run(
    command: list[str],
    tell: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    wanted: Callable[[], bool] | None = None,
) -> int:
    """Run `command` in `folder`, pass each line of its output to `tell`, return its exit code.

    No process of the command's group survives this function. An exception, such as a cancelled
    run, interrupts the command and kills it after `parent.GRACE` seconds. Exceptions reach only
    the main thread, so in other threads `wanted` is called every second; the command ends in the
    same way when `wanted` returns False.
    """
    process = subprocess.Popen(
        [sys.executable, guard.__file__, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | OWN | dict(environment or {}),
        cwd=folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    output = lines(process.stdout.fileno())
    over = threading.Event()
    if wanted:
        watching = threading.Thread(target=_watch, args=(process.pid, wanted, over), daemon=True)
        watching.start()
    try:
        for line in output:
            tell(line)
        return process.wait()
    except BaseException:
        threading.Thread(target=guard.end_group, args=(process.pid,), daemon=True).start()
        for line in lines(process.stdout.fileno()):
            tell(line)
        raise
    finally:
        over.set()
        # Processes of the group that still run.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _watch(group: int, wanted: Callable[[], bool], over: threading.Event) -> None:
    while not over.wait(_SECONDS_BETWEEN_LOOKS):
        if not wanted():
            guard.end_group(group)
            return


def run_keeping(
    last: int,
    command: list[str],
    tell: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    wanted: Callable[[], bool] | None = None,
) -> tuple[int, list[str]]:
    """Call `run`; returns the exit code and the `last` lines of the output."""
    last_lines: deque[str] = deque(maxlen=last)

    def listen(line: str) -> None:
        last_lines.append(line)
        tell(line)

    code = run(command, listen, environment, wanted=wanted)
    return code, list(last_lines)


def lines(stream: int) -> Iterator[str]:
    """The lines of a file descriptor as they arrive; a redrawn line (`\\r`) only now and then."""
    rest, last_update = b"", 0.0
    while chunk := os.read(stream, 65536):
        rest += chunk
        while end := _END.search(rest):
            line, rest = rest[: end.start()], rest[end.end() :]
            redrawn = end.group() == b"\r"
            if redrawn and time.monotonic() - last_update < SECONDS_BETWEEN_UPDATES:
                continue
            last_update = time.monotonic() if redrawn else last_update
            if text := line.decode(errors="replace").rstrip():
                yield text
    if text := rest.decode(errors="replace").rstrip():
        yield text
