"""`python -m pipelines.engine`: the process of one run, as a worker starts it (`prefect.yaml`).

A worker that is told to end kills what it has started at once, and a killed engine cannot say how
its run ended. So the worker starts this, and the engine behind it is in a session of its own: it
sees that its starter is gone (`orphan.py`) and ends as Crashed. Signals are passed on to it.
Standard library only: it must start at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

STARTER = "MANYMATCH_STARTER"
"""The environment variable that tells an engine the number of the process that started it."""
_SECONDS_BETWEEN_LOOKS = 1.0


def main(command: list[str]) -> int:
    """Run the command until it ends, or whoever started this does; its code, as a shell's."""
    worker = os.getppid()
    environment = os.environ | {STARTER: str(os.getpid())}
    engine = subprocess.Popen(command, env=environment, start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: engine.terminate())
    # Control-C in the worker's terminal is meant for the worker.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == worker:
        try:
            code = engine.wait(_SECONDS_BETWEEN_LOOKS)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            continue
    return 1


if __name__ == "__main__":
    sys.exit(main([sys.executable, "-m", "prefect.engine", *sys.argv[1:]]))
