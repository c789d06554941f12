"""What a process of tests starts ends with it, however it ends.

An interrupted or killed pytest runs few of its fixtures to their end, and a service, its worker and
a training have sessions of their own. So each process of tests gives its children a mark in their
environment, which their children inherit, and starts this file as a guard. The guard waits for the
end of the tests and then ends every process that has the mark.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import uuid

import psutil

MARK = "MANYMATCH_TESTS"
_GRACE = 5.0
"""Seconds between the signal to end and the kill."""
_PATIENCE = 120.0
"""Seconds after which the guard gives up."""


def end_with_this_process():
    """Mark all processes that start from now on, and start their guard."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    subprocess.Popen(
        [sys.executable, __file__, str(os.getpid()), mark],
        env={name: value for name, value in os.environ.items() if name != MARK},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # control-C in a terminal is for the tests
    )


def _guard(tests, mark):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(tests)], [], [])
    deadline, send = time.monotonic() + _PATIENCE, psutil.Process.terminate
    while (left := list(_marked(mark))) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                send(process)
        psutil.wait_procs(left, timeout=_GRACE)
        send = psutil.Process.kill


def _marked(mark):
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if not ended and process.environ().get(MARK) == mark:
                yield process


if __name__ == "__main__":
    _guard(int(sys.argv[1]), sys.argv[2])
