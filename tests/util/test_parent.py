"""A stage ends with the DVC that started it; a command that a user started goes on."""

import subprocess
import sys

import psutil

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


def started_and_orphaned(*arguments):
    """A stage whose starter was killed."""
    command = [sys.executable, "-c", STARTER, STAGE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout.readline() == b"begun\n"
        stage = psutil.Process(starter.pid).children(recursive=True)[-1]
        starter.kill()
    return stage
