"""Runs a command for as long as whoever started it lives: `python guard.py COMMAND ...`.

The starter holds the other end of standard input. When that closes, even because the starter was
killed with -9, the process group (this process, the command and all its children) is ended too. So
no orphaned stage holds DVC's lock or writes beside the next run. Standard library only: it must
start at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

GRACE = 5.0
"""Seconds that a stage has to end by itself after an interrupt."""


def end_group(group: int) -> None:
    """Interrupt a process group, as control-C does; kill it if that does not end it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        time.sleep(GRACE)
        os.killpg(group, signal.SIGKILL)


def _end_with_starter() -> None:
    os.read(0, 1)
    end_group(os.getpgrp())


def main() -> int:
    """Run the command; its exit code, as a shell gives it."""
    # A starter in the background may have passed on that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_starter, daemon=True).start()
    code = process.wait()
    # What the command left running would keep the output open, and the starter listening to it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
