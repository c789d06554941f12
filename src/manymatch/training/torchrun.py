"""Training under `torchrun`, where the environment asks for it: DVC's stages have one command."""

from __future__ import annotations

import os
import shlex
import sys

from torch import distributed

TORCHRUN = "MANYMATCH_TORCHRUN"
"""The environment variable with its options: `--standalone --nproc-per-node 4`, or on the first of
two hosts `--nnodes 2 --node-rank 0 --nproc-per-node 4 --master-addr HOST --master-port 29400`."""


def relaunch() -> None:
    """Become `torchrun OPTIONS -m manymatch ...`, this very command. In the processes that it
    starts, and where the environment does not ask for it, nothing happens."""
    options = shlex.split(os.environ.get(TORCHRUN, ""))
    if options and not distributed.is_torchelastic_launched():
        torchrun = [sys.executable, "-m", "torch.distributed.run", *options]
        os.execv(sys.executable, [*torchrun, "-m", "manymatch", *sys.argv[1:]])
