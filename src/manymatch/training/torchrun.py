"""Training under `torchrun`, where the environment asks for it: DVC's stages have one command."""

from __future__ import annotations

import os
import shlex
import sys

from torch import distributed

TORCHRUN = "MANYMATCH_TORCHRUN"
"""The environment variable with its options: `--nproc-per-node 4`, or with a meeting point
`--nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400`."""


def relaunch() -> None:
    """Become `torchrun OPTIONS -m manymatch ...`, this very command. In the processes that it
    starts, and where the environment does not ask for it, nothing happens."""
    options = shlex.split(os.environ.get(TORCHRUN, ""))
    if options and not distributed.is_torchelastic_launched():
        torchrun = [sys.executable, "-m", "torch.distributed.run", *options]
        os.execv(sys.executable, [*torchrun, "-m", "manymatch", *sys.argv[1:]])
