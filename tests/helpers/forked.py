"""Work in forked child processes, which end before the test is given up."""

import faulthandler
import os
import signal
import sys
import traceback
from datetime import timedelta
from functools import partial

import torch
from torch import distributed

_PATIENCE = 300
"""Seconds after which a child is ended: a fork of a process with threads can hang."""


def forked(work):
    """The id of a child process that does `work` on one core and exits with 0, or with 1 after an
    error."""
    child = os.fork()
    if not child:
        code = 1
        try:
            # At the alarm the child prints where it is, and dies. A test may have replaced stderr.
            faulthandler.register(signal.SIGALRM, sys.__stderr__, chain=True)
            signal.alarm(_PATIENCE)
            torch.set_num_threads(1)  # the parent's threads are not there
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def in_processes(world, work, folder):
    """What `work(rank)` returns in each of `world` processes that know each other."""
    children = [forked(partial(_work, rank, world, work, folder)) for rank in range(world)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * world
    return [torch.load(folder / f"{rank}.pt") for rank in range(world)]


def _work(rank, world, work, folder):
    meeting = f"file://{folder}/meeting"
    patience = timedelta(seconds=60)  # if the other process failed
    distributed.init_process_group("gloo", meeting, patience, rank=rank, world_size=world)
    torch.save(work(rank), folder / f"{rank}.pt")
