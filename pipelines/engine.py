"""`python -m pipelines.engine`: the process that a worker starts for one run (`prefect.yaml`).

A worker that must end kills its children at once, and a killed engine cannot report how its run
ended. So the worker starts this process, and this process starts Prefect's engine in a session of
its own. The engine sees that its starter is gone (`crashed_runs.py`) and reports the run as
Crashed. Signals are passed on to the engine. This module imports only the standard library, because
it must start at once.
"""

import os
import signal
import subprocess
import sys

STARTER = "MANYMATCH_STARTER"
"""The environment variable with the process id of the engine's starter."""
_SECONDS_BETWEEN_LOOKS = 1.0


def main(command: list[str]) -> int:
    """Run the command until it ends or the worker ends; returns the exit code, as a shell does."""
    worker = os.getppid()
    environment = os.environ | {STARTER: str(os.getpid())}
    engine: subprocess.Popen[bytes] | None = None

    def terminate(*_: object) -> None:
        if engine is None:
            sys.exit(128 + signal.SIGTERM)
        engine.terminate()

    signal.signal(signal.SIGTERM, terminate)
    engine = subprocess.Popen(command, env=environment, start_new_session=True)
    # Control-C in the worker's terminal is for the worker.
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
