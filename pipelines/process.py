"""Commands in process groups of their own; their output is passed on line by line.

`python process.py STARTER COMMAND ...` is the guard of a command. When the process with the id
STARTER ends, even because of `kill -9`, the guard ends its process group: itself, the command and
all children. So no orphaned command holds DVC's lock or writes at the same time as the next run.
This module imports little, because the guard must start at once.
"""

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
from functools import partial
from pathlib import Path

from manymatch.util.parent import GRACE, call_when_parent_ends

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
    tell: Callable[[str], object] = lambda line: None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    wanted: Callable[[], bool] | None = None,
    kept: int | None = 200,
) -> tuple[int, list[str]]:
    """Run `command` in `folder` and pass each line of its output to `tell`.

    No process of the command's group survives this function. An exception, such as a cancelled
    run, interrupts the command and kills it after `parent.GRACE` seconds. Exceptions reach only
    the main thread, so in other threads `wanted` is called every second; the command ends in the
    same way when `wanted` returns False.

    Returns:
        the exit code, and the last `kept` lines of the output (None: all).
    """
    last: deque[str] = deque(maxlen=kept)
    process = subprocess.Popen(
        [sys.executable, __file__, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | OWN | dict(environment or {}),
        cwd=folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    over = threading.Event()

    def watch() -> None:
        while wanted and not over.wait(_SECONDS_BETWEEN_LOOKS):
            if not wanted():
                _end_group(process.pid)
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        for line in lines(process.stdout.fileno()):
            last.append(line)
            tell(line)
        return process.wait(), list(last)
    except BaseException:
        threading.Thread(target=_end_group, args=(process.pid,), daemon=True).start()
        for line in lines(process.stdout.fileno()):
            if not line.startswith("ERROR: "):  # DVC calls each end before the end a failure
                tell(line)
        raise
    finally:
        over.set()
        # Processes of the group that still run.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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


def _end_group(group: int) -> None:
    """Interrupt a process group, as control-C does; kill the group if it does not end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        time.sleep(GRACE)
        os.killpg(group, signal.SIGKILL)


def _guard(starter: int, command: list[str]) -> int:
    """Run the command; returns its exit code, as a shell gives it."""
    # A starter in the background may ignore interrupts, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call_when_parent_ends(partial(_end_group, os.getpgrp()), starter)
    code = process.wait()
    # Processes that the command left would keep the output open, and the starter would wait.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(_guard(int(sys.argv[1]), sys.argv[2:]))
