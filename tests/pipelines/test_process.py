"""Commands in groups of their own: every line arrives, nothing stays behind. The process of a run
outlives neither its engine nor its worker, and passes signals on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipelines import engine, process

ROOT = Path(__file__).parents[2]
WORKS = "from pipelines import process\nprocess.run(['sh', '-c', 'echo on; exec sleep 300'], print)"
SAYS = "import os, sys, time; print(os.environ['MANYMATCH_STARTER'], flush=True); time.sleep(60)"
RUN = (
    "import sys; from pipelines import engine; engine._SECONDS_BETWEEN_LOOKS = 0.05;"
    "sys.exit(engine.main(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "two"]),
        (b"10%\r20%\r30%\rdone\n", ["10%", "done"]),
        (b"caf\xe9\n", ["caf�"]),
    ],
)
def test_lines(written, expected, tmp_path):
    (tmp_path / "written").write_bytes(written)
    with (tmp_path / "written").open("rb") as reading:
        assert list(process.lines(reading.fileno())) == expected


def test_a_command_is_heard_and_what_it_leaves_running_ends_with_it(tmp_path):
    before, said = sleepers(), list[str]()
    command = "sleep 300 & command -v python; pwd; echo $THING; echo aside >&2; exit 3"
    code, kept = process.run(
        ["sh", "-c", command], said.append, {"THING": "a"}, folder=tmp_path, kept=2
    )
    own = str(Path(sys.executable).with_name("python"))  # and not that of another environment
    assert (code, said, kept) == (3, [own, str(tmp_path), "a", "aside"], said[2:])
    assert sleepers() <= before
    assert process.run(["sh", "-c", "kill -9 $$"])[0] == 128 + signal.SIGKILL


def test_an_exception_interrupts_the_command_and_hears_its_last_words():
    lines = []

    def stop(line):
        lines.append(line)
        if line == "on":
            time.sleep(0.5)  # While a shell starts a command, it misses signals.
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        process.run(["sh", "-c", "trap 'echo off; exit' INT; echo on; sleep 300"], stop)
    assert lines == ["on", "off"] and time.monotonic() - began < 10


def test_the_command_ends_with_a_starter_that_is_killed():
    before = sleepers()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    starter = subprocess.Popen(
        [sys.executable, "-c", WORKS], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None and starter.stdout.readline() == "on\n"
    while not (started := sleepers() - before):
        time.sleep(0.1)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 10
    while (left := sleepers() & started) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def sleepers():
    """Processes `sleep 300`, which only these tests start."""
    result = psutil.process_iter(["cmdline", "status"])
    return {
        item.pid
        for item in result
        if item.info["cmdline"] == ["sleep", "300"] and item.info["status"] != psutil.STATUS_ZOMBIE
    }


def starter(behind=""):
    """The program of a run with `SAYS` as its engine, itself the child of `behind`, if given."""
    words = [sys.executable, "-c", RUN, sys.executable, "-c", SAYS]
    words = [sys.executable, "-c", behind, *words] if behind else words
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_the_code_of_a_run_is_that_of_its_engine(ends, code):
    assert engine.main([sys.executable, "-c", f"import os, sys; {ends}"]) == code


@pytest.mark.parametrize("behind", ["", "import subprocess, sys; subprocess.run(sys.argv[1:])"])
def test_an_engine_goes_on_when_its_starter_or_the_worker_is_killed(behind):
    """The engine then reports how its run ended."""
    program = starter(behind)
    own = psutil.Process(int(program.stdout.readline()))
    (running,) = own.children()
    program.kill()
    program.wait()
    if behind:  # the starter ends with the worker
        own.wait(10)
    assert running.is_running() and running.ppid() != own.pid
    running.kill()
