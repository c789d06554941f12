"""The process of a run outlives neither its engine nor its worker, and passes signals on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pipelines import engine

SAYS = "import os, sys, time; print(os.environ['MANYMATCH_STARTER'], flush=True); time.sleep(60)"
RUN = (
    "import sys; from pipelines import engine; engine._SECONDS_BETWEEN_LOOKS = 0.05;"
    "sys.exit(engine.main(sys.argv[1:]))"
)
ROOT = Path(__file__).parents[2]


def start(*command: str, behind: str = "") -> subprocess.Popen[str]:
    """The program of a run with `command` as its engine, itself the child of `behind`, if given."""
    words = [sys.executable, "-c", RUN, *command]
    if behind:
        words = [sys.executable, "-c", behind, *words]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_its_code_is_that_of_the_engine(ends: str, code: int) -> None:
    assert engine.main([sys.executable, "-c", f"import os, sys; {ends}"]) == code


def test_a_signal_is_passed_on() -> None:
    program = start(sys.executable, "-c", SAYS)
    assert program.stdout and int(program.stdout.readline()) == program.pid
    program.terminate()
    assert program.wait(10) == 143


def test_an_engine_goes_on_when_its_starter_is_killed_and_can_see_it() -> None:
    program = start(sys.executable, "-c", SAYS)
    assert program.stdout and program.stdout.readline()
    (behind,) = psutil.Process(program.pid).children()
    program.kill()
    program.wait()
    assert behind.is_running() and behind.ppid() != program.pid
    behind.kill()


def test_it_ends_when_the_worker_is_killed() -> None:
    worker = start(
        *(sys.executable, "-c", SAYS),
        behind="import subprocess, sys; subprocess.run(sys.argv[1:])",
    )
    assert worker.stdout
    program = psutil.Process(int(worker.stdout.readline()))
    (behind,) = program.children()
    worker.kill()
    worker.wait()
    program.wait(10)
    assert behind.is_running()
    behind.kill()
