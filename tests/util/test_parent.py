"""A stage ends with the DVC that started it; a command that a user started goes on."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

STAGE = """
import time
from manymatch.util.parent import end_with_dvc
end_with_dvc()
print("begun", flush=True)
while True:
    time.sleep(0.1)
"""
POOL = """
import time
from manymatch.util.processes import process_pool
with process_pool(1, "work") as pool:
    pool.submit(time.sleep, 100)
    print("begun", flush=True)
    time.sleep(100)
"""
INTERRUPTED = """
import pathlib, signal, tempfile, time
import typer
from manymatch.cli import commands
from manymatch.util.processes import process_pool

signal.signal(signal.SIGINT, signal.default_int_handler)
folder = pathlib.Path(__file__).with_name("folder")

def work(number):
    folder.joinpath(str(number)).touch()
    try:
        time.sleep(100)
    finally:
        folder.joinpath(f"{number} tidied").touch()

if __name__ == "__main__":
    @commands.app.command()
    def wait():
        with tempfile.TemporaryDirectory(dir=folder), process_pool(1, "work") as pool:
            for number in range(3):
                pool.submit(work, number)
            time.sleep(100)
    commands.main()
"""
STARTER = """
import os, subprocess, sys
stage, environment, *shell = sys.argv[1:]
command = [sys.executable, "-c", stage]
if shell:  # a shell that stays
    command = ["sh", "-c", '"$@"; true', "sh", *command]
subprocess.run(command, env=os.environ | ({"DVC_STAGE": "train"} if environment else {}))
"""


def test_a_stage_ends_with_a_killed_dvc_and_a_command_by_hand_survives_its_starter():
    stages = [started_and_orphaned(*arguments) for arguments in (["dvc"], ["dvc", "shell"])]
    by_hand = started_and_orphaned("")
    for stage in stages:
        stage.wait(120)
    assert by_hand.is_running() and by_hand.status() != psutil.STATUS_ZOMBIE
    by_hand.kill()


def test_a_worker_that_starts_after_the_end_of_its_pool_does_no_work():
    with subprocess.Popen([sys.executable, "-c", POOL], stdout=subprocess.PIPE) as starter:
        assert starter.stdout.readline() == b"begun\n"
        workers = psutil.Process(starter.pid).children()
        starter.kill()
    assert workers and not psutil.wait_procs(workers, 60)[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to_all", [True, False])
def test_an_interrupt_ends_workers_in_the_middle_of_their_work_and_tidies(tmp_path, number, to_all):
    """`to_all`: as the keyboard's interrupt, which reaches all processes of a terminal."""
    program, folder = tmp_path / "program.py", tmp_path / "folder"
    program.write_text(INTERRUPTED)
    folder.mkdir()
    command = [sys.executable, program, "wait"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, process_group=0) as first:
        while first.poll() is None and not (folder / "0").exists():
            time.sleep(0.05)
        (os.killpg if to_all else os.kill)(first.pid, number)
        _, said = first.communicate(timeout=60)
    assert first.returncode == 130 and said.startswith("interrupted; "), said
    assert {path.name for path in folder.iterdir()} == {"0", "0 tidied"}


def started_and_orphaned(*arguments):
    """A stage whose starter was killed."""
    command = [sys.executable, "-c", STARTER, STAGE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout.readline() == b"begun\n"
        stage = psutil.Process(starter.pid).children(recursive=True)[-1]
        starter.kill()
    return stage
