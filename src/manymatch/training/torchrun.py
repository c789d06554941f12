"""Training under `torchrun`, where the environment asks for it: DVC's stages have one command."""

from __future__ import annotations

import os
import shlex
import sys
from functools import partial

from torch import distributed

from manymatch.system.errors import ConfigError
from manymatch.system.parent import call_when_parent_ends

TORCHRUN = "MANYMATCH_TORCHRUN"
"""The environment variable with its options: `--standalone --nproc-per-node 4`, or on the first of
two hosts `--nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr HOST --master-port 29400`."""
_AGENT = "MANYMATCH_TORCHRUN_PID"
"""What tells torchrun's processes its number: one that starts slowly may find it gone already."""


def relaunch() -> None:
    """Become `torchrun OPTIONS -m manymatch ...`, this very command. In the processes that it
    starts, and where the environment does not ask for it, nothing happens."""
    options = _options(os.environ.get(TORCHRUN, ""))
    if options and not distributed.is_torchelastic_launched():
        os.environ[_AGENT] = str(os.getpid())  # kept by exec
        torchrun = [sys.executable, "-m", "torch.distributed.run", *options]
        os.execv(sys.executable, [*torchrun, "-m", "manymatch", *sys.argv[1:]])


def _options(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"{TORCHRUN}={text}: {error}") from None


def end_with_torchrun() -> None:
    """Let this process end within seconds of the `torchrun` that started it, if one did.

    Its processes are in sessions of their own: `kill -9` of the stage's process group ends
    `torchrun` but not them, and they would go on to write beside the next run.
    """
    if distributed.is_torchelastic_launched():
        agent = int(os.environ.get(_AGENT, os.getppid()))
        call_when_parent_ends(partial(os._exit, 1), agent)
