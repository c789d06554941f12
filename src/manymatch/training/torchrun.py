"""Training under `torchrun`, which an environment variable asks for: a DVC stage has one
command."""

from __future__ import annotations

import os
import shlex
import sys
from functools import partial

from torch import distributed

from manymatch.util.errors import ConfigError
from manymatch.util.parent import call_when_parent_ends

TORCHRUN = "MANYMATCH_TORCHRUN"
"""The environment variable with the options of `torchrun`, such as `--standalone --nproc-per-node
4`, or on the first of two hosts `--nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr HOST
--master-port 29400`."""
_AGENT = "MANYMATCH_TORCHRUN_PID"
"""The environment variable with the process number of `torchrun`, for its processes: `torchrun` may
have ended before a process starts."""


def relaunch() -> None:
    """Replace this process by `torchrun OPTIONS -m manymatch ...` with the same command.

    Nothing happens in the processes of `torchrun`, or if the environment variable is not set.
    """
    text = os.environ.get(TORCHRUN, "")
    try:
        options = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{TORCHRUN}={text}: {error}") from None
    if options and not distributed.is_torchelastic_launched():
        os.environ[_AGENT] = str(os.getpid())  # exec keeps the process number
        torchrun = [sys.executable, "-m", "torch.distributed.run", *options]
        os.execv(sys.executable, [*torchrun, "-m", "manymatch", *sys.argv[1:]])


def end_with_torchrun() -> None:
    """End this process within seconds after the end of the `torchrun` that started it.

    The processes of `torchrun` are in sessions of their own: `kill -9` of the stage's process group
    ends `torchrun` but not its processes, which would write to the same files as the next run.
    """
    if distributed.is_torchelastic_launched():
        agent = int(os.environ.get(_AGENT, os.getppid()))
        call_when_parent_ends(partial(os._exit, 1), agent)
