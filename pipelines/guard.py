"""`python guard.py STARTER COMMAND ...` runs a command that ends when its starter ends.

When the process with the id STARTER ends, even because of `kill -9`, the guard ends its process
group: itself, the command and all children. So no orphaned command holds DVC's lock or writes at
the same time as the next run. The guard imports little, because it must start at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial

from manymatch.util.parent import GRACE, call_when_parent_ends


def end_group(group: int) -> None:
    """Interrupt a process group, as control-C does; kill it if it does not end."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        time.sleep(GRACE)
        os.killpg(group, signal.SIGKILL)


def main() -> int:
    """Run the command; returns its exit code, as a shell gives it."""
    # A starter in the background may ignore interrupts, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    starter, *command = sys.argv[1:]
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    call_when_parent_ends(partial(end_group, os.getpgrp()), int(starter))
    code = process.wait()
    # Processes that the command left would keep the output open, and the starter would wait.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
