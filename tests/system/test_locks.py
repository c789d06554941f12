"""A lock file keeps out other threads and processes, and a process that dies releases the lock."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from manymatch.system.locks import locked

HOLD = """
import sys
from pathlib import Path
from manymatch.system.locks import locked
with locked(Path(sys.argv[1]), "waiting"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_waited_for_and_ends_with_its_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.lock"
    held = threading.Event()

    def hold() -> None:
        with locked(path, "waiting for the other process"):
            held.set()

    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"held\n"
        thread = threading.Thread(target=hold)
        thread.start()
        assert not held.wait(0.3)
        process.kill()
    assert held.wait(10)
    thread.join()
    assert capsys.readouterr().err == "waiting for the other process\n"
