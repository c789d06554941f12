"""Nothing that a test has started outlives the process of the tests."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

HELPERS = Path(__file__).parents[1] / "helpers"
CONFTEST = """
import left_processes

def pytest_sessionstart():
    left_processes.end_with_this_process()
"""
TEST = """
import os, subprocess, sys, time
from pathlib import Path

BEHIND = '''
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = subprocess.Popen(["sleep", "900"], start_new_session=True)
print(os.getpid(), sleep.pid, flush=True)
time.sleep(900)
'''

def test_that_is_interrupted():
    command = [sys.executable, "-c", BEHIND]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    ids = started.stdout.readline()
    Path("made").write_text(f"{os.getpid()} {ids}")
    Path("made").rename("ids")
    time.sleep(900)
"""
"""The second process ignores SIGTERM; both have sessions of their own, as those of a service."""
PATIENCE = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "several", "worker"),
    [
        (signal.SIGINT, False, False),
        (signal.SIGKILL, False, False),
        (signal.SIGTERM, True, True),
    ],
    ids=["interrupted", "killed", "worker of xdist terminated"],
)
def test_interrupted_tests_leave_no_process(tmp_path, end, several, worker):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=."]
    command += ["-p", "xdist", "-n", "1"] if several else []
    tests = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HELPERS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "ids").exists():
        assert tests.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    tester, *started = map(psutil.Process, map(int, (tmp_path / "ids").read_text().split()))
    assert len(started) == 2 and all(process.is_running() for process in started)
    os.kill(tester.pid if worker else tests.pid, end)
    _, alive = psutil.wait_procs(started, timeout=PATIENCE)
    assert not alive
    tests.kill()
    tests.wait()
