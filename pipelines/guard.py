"""`python guard.py COMMAND ...` runs a command that ends when the starter of the guard ends.

The starter holds the other end of standard input. When the starter closes that end, even because
`kill -9` ended it, the guard ends its process group: itself, the command and all children. So no
orphaned stage holds DVC's lock or writes at the same time as the next run. The guard imports only
the standard library, because it must start at once.
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
"""Seconds between the interrupt and the kill of a stage."""


def end_group(group: int) -> None:
    """Interrupt a process group, as control-C does; kill it if it does not end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        time.sleep(GRACE)
        os.killpg(group, signal.SIGKILL)


def _end_with_starter() -> None:
    os.read(0, 1)
    end_group(os.getpgrp())


def main() -> int:
    """Run the command; returns its exit code, as a shell gives it."""
    # A starter in the background may ignore interrupts, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_starter, daemon=True).start()
    code = process.wait()
    # Processes that the command left would keep the output open, and the starter would wait.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
